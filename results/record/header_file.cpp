// The parts of the result file that are not tables: root attributes, /config, /provenance and /status.
#include "results/record/header_file.hpp"

#include <fmt/chrono.h>

#include <chrono>
#include <functional>
#include <type_traits>

#include "base/file_error.hpp"
#include "results/record/reader.hpp"
#include "results/record/table_file.hpp"

namespace stiefel {
namespace {

constexpr const char* time_units = "seconds since 1970-01-01T00:00:00Z";

void write_text(const hdf5::Group& group, const std::string& name, const std::string& text,
                const std::string& long_name) {
  hdf5::Dataset dataset = group.create_dataset(name, {hdf5::Type::text, {}, {}});
  dataset.write(0, std::span(&text, 1));
  describe(dataset, "1", long_name);
  dataset.close();
}

/// A one-dimensional dataset on a scale of its group.
hdf5::Dataset make_list(const hdf5::Group& group, const std::string& scale, const std::string& name, hdf5::Type type,
                        std::size_t length, const std::string& long_name, const std::string& units = "1",
                        std::uint64_t chunk = 0) {
  hdf5::Dataset dataset = group.create_dataset(name, {type, {length}, chunk ? hdf5::Shape{chunk} : hdf5::Shape{}});
  describe(dataset, units, long_name);
  hdf5::Dataset axis = group.dataset(scale);
  dataset.attach_scale(0, axis);
  axis.close();
  return dataset;
}

/// Lists of one length, one dataset per field of Row.
template <class Row> class RowWriter {
 public:
  RowWriter(const hdf5::Group& root, const std::string& path, const std::string& scale, const std::vector<Row>& rows)
      : group_(root.make_group(path)), scale_(scale), rows_(rows) {
    // An array of no rows has no axis to speak of: the group stays empty.
    if (!rows_.empty()) write_axis(group_, count_axis(scale, std::ssize(rows_), "index of the " + scale));
  }
  void text(const std::string& name, std::string Row::*field, const std::string& long_name) {
    if (rows_.empty()) return;
    std::vector<std::string> texts;
    for (const Row& row : rows_) texts.push_back(row.*field);
    hdf5::Dataset dataset = make_list(group_, scale_, name, hdf5::Type::text, rows_.size(), long_name);
    dataset.write(0, texts);
    dataset.close();
  }
  void integer(const std::string& name, std::int64_t Row::*field, const std::string& units,
               const std::string& long_name) {
    if (rows_.empty()) return;
    std::vector<double> values;
    for (const Row& row : rows_) values.push_back(double(row.*field));
    hdf5::Dataset dataset = make_list(group_, scale_, name, hdf5::Type::i8, rows_.size(), long_name, units);
    dataset.write(0, values.size(), values);
    dataset.close();
  }
  void close() { group_.close(); }

 private:
  hdf5::Group group_;
  std::string scale_;
  const std::vector<Row>& rows_;
};

void write_texts(const hdf5::Group& group, const std::string& scale, const std::string& name,
                 const std::vector<std::string>& texts, const std::string& long_name) {
  if (texts.empty()) return;
  write_axis(group, count_axis(scale, std::ssize(texts), "index of the " + scale));
  hdf5::Dataset dataset = make_list(group, scale, name, hdf5::Type::text, texts.size(), long_name);
  dataset.write(0, texts);
  dataset.close();
}

void write_config(hdf5::Group& root, const RunHeader& header) {
  hdf5::Group config = root.make_group("/config");
  config.set_text("hash", header.hash);
  write_text(config, "yaml", header.yaml, "resolved experiment");
  write_text(config, "source", header.source, "experiment as written");
  write_texts(config, "override", "overrides", header.overrides, "overrides on the command line");
  write_texts(config, "origin", "origins", header.origins, "where each key was set, key=file:line");
  config.close();
}

void create_changes(hdf5::Group& segments) {
  make_list(segments, "segment", "changes", hdf5::Type::text, 0, "what was allowed to differ from before, as JSON", "1",
            16)
      .close();
}

/// Lists that grow by a row at each start.
void create_segments(const hdf5::Group& root) {
  hdf5::Group group = root.make_group("/provenance/segments");
  hdf5::Dataset scale = group.create_dataset("segment", {hdf5::Type::i8, {0}, {16}});
  describe(scale, "1", "start or restart of the run");
  scale.make_scale("segment");
  scale.close();
  const auto list = [&](const char* name, hdf5::Type type, const char* units, const char* long_name) {
    make_list(group, "segment", name, type, 0, long_name, units, 16).close();
  };
  list("start_step", hdf5::Type::i8, "1", "step at which the segment began");
  list("end_step", hdf5::Type::i8, "1", "last committed step of the segment");
  list("started", hdf5::Type::f8, time_units, "time at which the segment began");
  list("ended", hdf5::Type::f8, time_units, "time of the last commit of the segment");
  list("host", hdf5::Type::text, "1", "machine that ran the segment");
  list("reason", hdf5::Type::text, "1", "state at the end of the segment");
  create_changes(group);
  group.close();
}

void write_segments(const hdf5::Group& root, const std::vector<Segment>& segments) {
  hdf5::Group group = root.group("/provenance/segments");
  const auto write = [&](const char* name, auto value_of) {
    hdf5::Dataset dataset = group.dataset(name);
    dataset.resize({segments.size()});
    std::vector<std::decay_t<decltype(value_of(segments[0], 0))>> values;
    for (std::size_t i = 0; i < segments.size(); ++i) values.push_back(value_of(segments[i], i));
    if constexpr (std::is_same_v<typename decltype(values)::value_type, std::string>)
      dataset.write(0, values);
    else
      dataset.write(0, values.size(), values);
    dataset.close();
  };
  write("segment", [](const Segment&, std::size_t i) { return double(i); });
  write("start_step", [](const Segment& s, std::size_t) { return double(s.start_step); });
  write("end_step", [](const Segment& s, std::size_t) { return double(s.end_step); });
  write("started", [](const Segment& s, std::size_t) { return s.started; });
  write("ended", [](const Segment& s, std::size_t) { return s.ended; });
  write("host", [](const Segment& s, std::size_t) { return s.host; });
  write("reason", [](const Segment& s, std::size_t) { return s.reason; });
  if (!group.exists("changes")) create_changes(group);  // of a file that knows of none yet
  write("changes", [](const Segment& s, std::size_t) { return s.changes; });
  group.close();
}

void write_provenance(hdf5::Group& root, const RunHeader& header) {
  hdf5::Group group = root.make_group("/provenance");
  for (const auto& [name, text] : header.provenance) group.set_text(name, text);
  group.close();

  RowWriter<PluginRow> plugins(root, "/provenance/plugins", "plugin", header.plugins);
  plugins.text("name", &PluginRow::name, "name of the plugin");
  plugins.text("kind", &PluginRow::kind, "role of the plugin");
  plugins.text("path", &PluginRow::path, "file that held the plugin");
  plugins.text("version", &PluginRow::version, "version that the plugin states");
  plugins.text("build_id", &PluginRow::build_id, "build id of the file");
  plugins.text("sha256", &PluginRow::sha256, "SHA-256 of the file");
  plugins.close();

  RowWriter<DatasetRow> datasets(root, "/provenance/datasets", "dataset", header.datasets);
  datasets.text("name", &DatasetRow::name, "name of the data file");
  datasets.text("path", &DatasetRow::path, "path of the data file");
  datasets.integer("bytes", &DatasetRow::bytes, "byte", "length of the data file");
  datasets.text("sha256", &DatasetRow::sha256, "SHA-256 of the data file");
  datasets.close();

  create_segments(root);
  write_segments(root, header.segments);
}

/// Overwrites the last row of a dataset of /provenance/segments.
void end_segment(const hdf5::Group& group, const std::string& name,
                 const std::function<void(hdf5::Dataset&, std::uint64_t)>& write) {
  hdf5::Dataset dataset = group.dataset(name);
  write(dataset, dataset.shape().at(0) - 1);
  dataset.close();
}

}  // namespace

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string iso_8601(double seconds_since_1970) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t(seconds_since_1970)));
}

void rewrite_provenance(const hdf5::Group& root, const RunHeader& header) {
  write_segments(root, header.segments);
  hdf5::Group group = root.group("/provenance");
  for (const auto& [name, text] : header.provenance)
    if (name == "working_directory" || name == "data_directory") group.set_text(name, text);
  group.close();
}

void write_header(hdf5::Group& root, const RunHeader& header) {
  root.set_text("Conventions", "stiefel-run-1");
  root.set_number("format_version", format_version, hdf5::Type::i4);
  root.set_text("title", header.title);
  root.set_text("run_id", header.run_id);
  root.set_number("parameters", double(header.parameters), hdf5::Type::i8);
  root.set_number("baseline", header.baseline);
  root.set_text("created", iso_8601(header.segments.empty() ? seconds_since_1970() : header.segments[0].started));
  root.set_text("array_order", "C; MATLAB shows axes reversed");
  write_config(root, header);
  write_provenance(root, header);
}

RunHeader read_header(const ResultReader& file, bool provenance) {
  const auto texts = [&](const std::string& path) {
    return file.exists(path) ? file.texts(path) : std::vector<std::string>();
  };
  const auto numbers = [&](const std::string& path) {
    return file.exists(path) ? file.read(path).values : std::vector<double>();
  };
  RunHeader header;
  header.title = file.text_attribute("/", "title");
  header.run_id = file.text_attribute("/", "run_id");
  if (file.has_attribute("/", "baseline")) header.baseline = file.number_attribute("/", "baseline");
  if (file.has_attribute("/", "parameters")) header.parameters = std::int64_t(file.number_attribute("/", "parameters"));
  header.yaml = file.text("/config/yaml");
  const auto fill = [&](auto& rows, const std::string& group, auto... fields) {
    const auto fill_one = [&](const char* name, auto field) {
      using Row = typename std::decay_t<decltype(rows)>::value_type;
      const std::string path = group + "/" + name;
      if constexpr (std::is_same_v<std::decay_t<decltype(std::declval<Row>().*field)>, std::string>) {
        const auto values = texts(path);
        rows.resize(std::max(rows.size(), values.size()));
        for (std::size_t i = 0; i < values.size(); ++i) rows[i].*field = values[i];
      } else {
        const auto values = numbers(path);
        rows.resize(std::max(rows.size(), values.size()));
        for (std::size_t i = 0; i < values.size(); ++i)
          rows[i].*field = static_cast<std::decay_t<decltype(std::declval<Row>().*field)>>(values[i]);
      }
    };
    (fill_one(fields.first, fields.second), ...);
  };
  const auto field = [](const char* name, auto member) { return std::pair(name, member); };
  fill(header.plugins, "/provenance/plugins", field("name", &PluginRow::name), field("sha256", &PluginRow::sha256));
  fill(header.datasets, "/provenance/datasets", field("name", &DatasetRow::name), field("sha256", &DatasetRow::sha256));
  if (!provenance) return header;
  header.source = file.text("/config/source");
  header.overrides = texts("/config/overrides");
  header.hash = file.text_attribute("/config", "hash");
  header.origins = texts("/config/origins");
  for (const std::string& name : file.attributes("/provenance"))
    header.provenance.emplace_back(name, file.text_attribute("/provenance", name));
  fill(header.plugins, "/provenance/plugins", field("kind", &PluginRow::kind), field("path", &PluginRow::path),
       field("version", &PluginRow::version), field("build_id", &PluginRow::build_id));
  fill(header.datasets, "/provenance/datasets", field("path", &DatasetRow::path), field("bytes", &DatasetRow::bytes));
  fill(header.segments, "/provenance/segments", field("start_step", &Segment::start_step),
       field("end_step", &Segment::end_step), field("started", &Segment::started), field("ended", &Segment::ended),
       field("host", &Segment::host), field("reason", &Segment::reason), field("changes", &Segment::changes));
  return header;
}

void write_status(hdf5::Group& root, std::int64_t committed_step, const Status& status) {
  hdf5::Group group = root.make_group("/status");
  for (hdf5::Object* object : {static_cast<hdf5::Object*>(&root), static_cast<hdf5::Object*>(&group)}) {
    object->set_number("committed_step", double(committed_step), hdf5::Type::i8);
    object->set_text("state", status.state);
  }
  group.set_text("message", status.message);
  group.set_number("exit_code", status.exit_code, hdf5::Type::i4);
  group.set_number("best_metric", status.best_metric);
  group.set_number("best_step", double(status.best_step), hdf5::Type::i8);
  group.set_number("cpu_seconds", status.cpu_seconds);
  group.close();

  hdf5::Group segments = root.group("/provenance/segments");
  const double step = double(committed_step), now = seconds_since_1970();
  end_segment(segments, "end_step", [&](auto& dataset, auto row) { dataset.write(row, 1, std::span(&step, 1)); });
  end_segment(segments, "ended", [&](auto& dataset, auto row) { dataset.write(row, 1, std::span(&now, 1)); });
  end_segment(segments, "reason", [&](auto& dataset, auto row) { dataset.write(row, std::span(&status.state, 1)); });
  segments.close();
}

std::uint64_t header_bytes(const RunHeader& header) {
  std::uint64_t texts = header.yaml.size() + header.source.size();
  for (const auto& text : header.overrides) texts += text.size() + 64;
  for (const auto& text : header.origins) texts += text.size() + 64;
  for (const auto& [name, text] : header.provenance) texts += name.size() + text.size() + 128;
  for (const PluginRow& row : header.plugins)
    texts += row.name.size() + row.kind.size() + row.path.size() + row.version.size() + 1024;
  for (const DatasetRow& row : header.datasets) texts += row.name.size() + row.path.size() + 1024;
  return 2 * texts + (std::uint64_t(1) << 18);  // global heaps are filled in blocks
}

}  // namespace stiefel
