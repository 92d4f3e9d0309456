// The parts of the result file that are not tables: root attributes, /config, /provenance and /status.
#include "record/header_file.hpp"

#include <fmt/chrono.h>

#include <chrono>
#include <type_traits>

#include "base/file_error.hpp"
#include "record/reader.hpp"
#include "record/table_file.hpp"

namespace stiefel {
namespace {

void write_text(const hdf5::Group& group, const std::string& name, const std::string& text,
                const std::string& long_name) {
  hdf5::Dataset dataset = group.create_dataset(name, {hdf5::Type::text, {}, {}});
  dataset.write(0, std::span(&text, 1));
  describe(dataset, "1", long_name);
  dataset.close();
}

/// Creates a one-dimensional dataset along a scale of its group.
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

/// The type on the disk of a field.
template <class T> constexpr hdf5::Type type_of_field =
    std::is_same_v<T, std::string> ? hdf5::Type::text : hdf5::type_for<T>;

/// Writes one field of all rows into a list of the same length.
template <class Row, class T> void write_field(hdf5::Dataset list, const std::vector<Row>& rows, T Row::*field) {
  std::vector<T> values;
  for (const Row& row : rows) values.push_back(row.*field);
  list.write(0, values);
  list.close();
}

/// Writes one list for each field of the rows. Without rows, the group stays empty and has no axis.
template <class Row> void write_rows(const hdf5::Group& root, const std::string& path, const std::string& scale,
                                     const std::vector<Row>& rows) {
  hdf5::Group group = root.make_group(path);
  if (!rows.empty()) {
    write_axis(group, count_axis(scale, std::ssize(rows), "index of the " + scale));
    Row::each([&]<class T>(const char* name, T Row::*field, const char* long_name, const char* units = "1") {
      write_field(make_list(group, scale, name, type_of_field<T>, rows.size(), long_name, units), rows, field);
    });
  }
  group.close();
}

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

/// Writes the lists of segments, which grow at each start of the run. Creates those that a new or older file lacks.
void write_segments(const hdf5::Group& root, const std::vector<Segment>& segments) {
  hdf5::Group group = root.make_group("/provenance/segments");
  if (!group.exists("segment")) {
    hdf5::Dataset created = group.create_dataset("segment", {hdf5::Type::i8, {0}, {16}});
    describe(created, "1", "start or restart of the run");
    created.make_scale("segment");
    created.close();
  }
  hdf5::Dataset scale = group.dataset("segment");
  scale.resize({segments.size()});
  scale.write(0, count_axis("segment", std::ssize(segments), "").values);
  scale.close();
  Segment::each([&]<class T>(const char* name, T Segment::*field, const char* long_name, const char* units = "1") {
    hdf5::Dataset list = group.exists(name)
                             ? group.dataset(name)
                             : make_list(group, "segment", name, type_of_field<T>, 0, long_name, units, 16);
    list.resize({segments.size()});
    write_field(std::move(list), segments, field);
  });
  group.close();
}

void write_provenance(hdf5::Group& root, const RunHeader& header) {
  hdf5::Group group = root.make_group("/provenance");
  for (const auto& [name, text] : header.provenance) group.set_text(name, text);
  group.close();

  write_rows(root, "/provenance/plugins", "plugin", header.plugins);
  write_rows(root, "/provenance/datasets", "dataset", header.datasets);
  write_segments(root, header.segments);
}

/// Overwrites the last row of a dataset of /provenance/segments.
template <class T> void end_segment(const hdf5::Group& group, const std::string& name, const T& value) {
  hdf5::Dataset dataset = group.dataset(name);
  dataset.write(dataset.shape().at(0) - 1, std::span(&value, 1));
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
  RunHeader header;
  header.title = file.text_attribute("/", "title");
  header.run_id = file.text_attribute("/", "run_id");
  if (file.has_attribute("/", "baseline")) header.baseline = file.number_attribute("/", "baseline");
  if (file.has_attribute("/", "parameters")) header.parameters = std::int64_t(file.number_attribute("/", "parameters"));
  header.yaml = file.text("/config/yaml");
  const auto fill = [&]<class Row>(std::vector<Row>& rows, const std::string& group) {
    Row::each([&]<class T>(const std::string& name, T Row::*field, auto&&...) {
      const std::string path = group + "/" + name;
      if ((!provenance && name != "name" && name != "kind" && name != "sha256") || !file.exists(path)) return;
      const auto values = [&] {
        if constexpr (std::is_same_v<T, std::string>)
          return file.texts(path);
        else
          return file.read(path).values;
      }();
      rows.resize(std::max(rows.size(), values.size()));
      for (std::size_t i = 0; i < values.size(); ++i) rows[i].*field = static_cast<T>(values[i]);
    });
  };
  fill(header.plugins, "/provenance/plugins");
  fill(header.datasets, "/provenance/datasets");
  fill(header.segments, "/provenance/segments");
  if (!provenance) return header;
  header.source = file.text("/config/source");
  header.overrides = texts("/config/overrides");
  header.hash = file.text_attribute("/config", "hash");
  header.origins = texts("/config/origins");
  for (const std::string& name : file.attributes("/provenance"))
    header.provenance.emplace_back(name, file.text_attribute("/provenance", name));
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
  end_segment(segments, "end_step", committed_step);
  end_segment(segments, "ended", seconds_since_1970());
  end_segment(segments, "reason", status.state);
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
