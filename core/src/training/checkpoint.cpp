#include "training/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/atomic_file.hpp"
#include "base/file_error.hpp"
#include "base/sha256.hpp"
#include "results/record/hdf5.hpp"
#include "results/record/reader.hpp"
#include "training/checkpoint_index.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

struct BlockShape {
  explicit BlockShape(const BlockSpec& spec)
      : rows(spec.rows * spec.cols == spec.size ? spec.rows : spec.size), cols(spec.rows * spec.cols == spec.size ? spec.cols : 1) {}
  Index rows, cols;
};

/// f(T()) with the type of an item's numbers.
template <class F> auto with_type(StateItem::Type type, F&& f) {
  switch (type) {
    case StateItem::float32:
      return f(float());
    case StateItem::float64:
      return f(double());
    default:
      return f(std::int64_t());
  }
}

std::vector<double> numbers_of(const StateItem& item) {
  return with_type(item.type, [&]<class T>(T) {
    std::vector<T> values(item.bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), item.bytes.data(), item.bytes.size());
    return std::vector<double>(values.begin(), values.end());
  });
}

void set_numbers(StateItem& item, const std::vector<double>& numbers) {
  with_type(item.type, [&]<class T>(T) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const T value = T(numbers[i]);
      std::memcpy(item.bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

// ---- writing

void write_numbers(const hdf5::Group& group, const std::string& name, hdf5::Type type, const hdf5::Shape& shape,
                   const std::vector<double>& numbers) {
  hdf5::Dataset dataset = group.create_dataset(name, {type, shape, {}});
  if (!numbers.empty()) dataset.write(0, shape[0], numbers);
  dataset.close();
}

void write_items(const hdf5::Group& group, const StateItems& items) {
  for (const auto& [name, item] : items) {
    const std::vector<double> numbers = numbers_of(item);
    if (item.type == StateItem::int64 && std::any_of(numbers.begin(), numbers.end(), [](double x) { return std::abs(x) > 0x1p53; }))
      throw Error("the state `" + name + "` has a whole number beyond ±2⁵³, which a checkpoint does not hold", Exit::plugin);
    write_numbers(group, name, item.type == StateItem::int64 ? hdf5::Type::i8 : hdf5::Type::f8, {numbers.size()}, numbers);
  }
}

template <class S> void write_state(const hdf5::Group& group, const Layout& layout, const NetworkState<S>& state) {
  hdf5::Group weights = group.make_group("weights");
  const auto blocks = layout.all(state.values.data());
  for (Index i = 0; i < blocks.count(); ++i) {
    const BlockShape shape(layout.block(i));
    const Matrix<double> row_major = as_matrix(blocks[i], shape.rows, shape.cols).transpose().template cast<double>();
    write_numbers(weights, layout.block(i).name, hdf5::Type::f8, {std::uint64_t(shape.rows), std::uint64_t(shape.cols)},
                  {row_major.data(), row_major.data() + row_major.size()});
  }
  weights.close();
  for (const auto& [plugin, items] : state.plugins) write_items(group.make_group("state/" + plugin), items);
}

/// A new file in place of `path`, with the root group filled by `fill`; returns its sum.
template <class F> std::string replace_hdf5(const fs::path& path, Index step, const char* float_type, F&& fill) {
  fs::create_directories(path.parent_path());
  AtomicFile target(path);
  hdf5::File file = hdf5::File::create(target.temporary());
  file.root().set_number("format_version", format_version, hdf5::Type::i4);
  file.root().set_number("step", double(step), hdf5::Type::i8);
  file.root().set_text("float_type", float_type);
  fill(file.root());
  file.close();
  const ResultReader back(target.temporary());
  if (back.number_attribute("/", "step") != double(step))
    throw Error(path.string() + " does not read back the step that was written; the disk or its file system cannot be trusted",
                Exit::damaged);
  const std::string sum = sha256_of_file(target.temporary());
  target.replace();
  target.sync_directory();
  return sum;
}

template <class S> constexpr const char* float_type = sizeof(S) == 4 ? "float32" : "float64";

// ---- reading

/// Numbers of a dataset that must be as many as `count`.
std::vector<double> read_numbers(const ResultReader& file, const fs::path& path, const std::string& name, std::size_t count) {
  if (!file.exists(name)) throw Error(fmt::format("{} has no {}: it belongs to a different network", path.string(), name), Exit::damaged);
  std::vector<double> values = file.read(name).values;
  if (values.size() != count)
    throw Error(fmt::format("{}: {} has {} numbers, but {} are needed", path.string(), name, values.size(), count), Exit::damaged);
  return values;
}

void read_items(const ResultReader& file, const fs::path& path, const std::string& group, StateItems& items) {
  for (auto& [name, item] : items) set_numbers(item, read_numbers(file, path, group + "/" + name, numbers_of(item).size()));
}

template <class S>
void read_state(const ResultReader& file, const fs::path& path, const std::string& group, const Layout& layout, NetworkState<S>& state) {
  const auto blocks = layout.all(state.values.data());
  for (Index i = 0; i < blocks.count(); ++i) {
    const BlockShape shape(layout.block(i));
    const auto values = read_numbers(file, path, group + "/weights/" + layout.block(i).name, blocks[i].size());
    as_matrix(blocks[i], shape.rows, shape.cols) =
        as_matrix(std::span<const double>(values), shape.cols, shape.rows).transpose().template cast<S>();
  }
  for (auto& [plugin, items] : state.plugins) read_items(file, path, group + "/state/" + plugin, items);
}

}  // namespace

template <class S> void write_network(const fs::path& path, const Layout& layout, const NetworkState<S>& state, Index step) {
  replace_hdf5(path, step, float_type<S>, [&](const hdf5::Group& root) { write_state(root, layout, state); });
}

template <class S>
void write_diverged(const fs::path& path, const Layout& layout, const NetworkState<S>& state, const Batch<S>& batch, Index step) {
  replace_hdf5(path, step, float_type<S>, [&](const hdf5::Group& root) {
    write_state(root, layout, state);
    const hdf5::Group group = root.make_group("batch");
    const auto list = [&](const std::string& name, const auto& values) {
      if (!values.empty()) write_numbers(group, name, hdf5::Type::f8, {values.size()}, {values.begin(), values.end()});
    };
    const auto columns = [&](const std::string& name, CMat<S> values) {
      const Matrix<double> copy = values.template cast<double>();
      if (copy.size() > 0)
        write_numbers(group, name, hdf5::Type::f8, {std::uint64_t(copy.cols()), std::uint64_t(copy.rows())},
                      {copy.data(), copy.data() + copy.size()});
    };
    std::vector<double> lengths;
    for (Index b = 0; b < batch.sequences(); ++b) lengths.push_back(double(batch.length(b)));
    list("lengths", lengths);
    list("symbols", batch.symbols());
    list("labels", batch.labels());
    list("weights", batch.weights());
    columns("inputs", batch.inputs());
    columns("targets", batch.targets());
  });
}

template <class S> Index read_network(const fs::path& path, Network<S>& network) {
  const ResultReader file(path);
  NetworkState<S> state = network.state();
  read_state(file, path, "", network.layout(), state);
  network.restore(state);
  return Index(file.number_attribute("/", "step"));
}

template <class S>
void write_checkpoint(const fs::path& run, const Layout& layout, const Checkpoint<S>& checkpoint, Index keep, Index every) {
  CheckpointEntry entry{checkpoint.step, 0, ""};
  const fs::path path = run / "checkpoints" / entry.file();
  entry.sum = replace_hdf5(path, checkpoint.step, float_type<S>, [&](const hdf5::Group& root) {
    write_state(root, layout, checkpoint.network);
    if (!checkpoint.best.values.empty()) write_state(root.make_group("best"), layout, checkpoint.best);
    for (const auto& [part, items] : checkpoint.parts) write_items(root.make_group("run/" + part), items);
    const hdf5::Group rest = root.make_group("run");
    const std::vector<double> carried(checkpoint.carried.data(), checkpoint.carried.data() + checkpoint.carried.size());
    write_numbers(rest, "carried", hdf5::Type::f8, {std::uint64_t(checkpoint.carried.cols()), std::uint64_t(checkpoint.carried.rows())},
                  carried);
    hdf5::Group rows = root.make_group("rows");
    for (const auto& [group, count] : checkpoint.rows) {
      hdf5::Group table = rows.make_group(group.substr(1));
      table.set_number("rows", double(count), hdf5::Type::i8);
      table.close();
    }
    rows.close();
  });
  entry.bytes = fs::file_size(path);

  std::vector<CheckpointEntry> entries = read_checkpoint_index(run), kept;
  std::erase_if(entries, [&](const CheckpointEntry& other) { return other.step >= entry.step; });
  entries.push_back(entry);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool stays = i + std::size_t(keep) >= entries.size() || (every > 0 && entries[i].step % every == 0);
    if (stays) kept.push_back(entries[i]);
  }
  write_checkpoint_index(run, kept);
  remove_unlisted_checkpoints(run);
}

namespace {

/// checkpoints/step_*.h5, sorted.
std::vector<fs::path> files_of_steps(const fs::path& run) {
  std::vector<fs::path> files;
  if (!fs::exists(run / "checkpoints")) return files;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step_") && name.ends_with(".h5")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

void remove_unlisted_checkpoints(const fs::path& run) {
  if (!has_checkpoint_index(run)) return;
  const std::vector<CheckpointEntry> listed = read_checkpoint_index(run);
  for (const fs::path& file : files_of_steps(run))
    if (std::ranges::find(listed, file.filename().string(), &CheckpointEntry::file) == listed.end()) fs::remove(file);
}

namespace {

/// Groups below /rows that say how many rows they stand for.
void read_rows(const ResultReader& file, const std::string& group, RowCounts& rows) {
  const std::string path = "/rows" + group;
  if (file.has_attribute(path, "rows")) rows[group] = std::uint64_t(file.number_attribute(path, "rows"));
  for (const std::string& child : file.children(path)) read_rows(file, group + "/" + child, rows);
}

}  // namespace

template <class S> void read_checkpoint(const fs::path& path, const Layout& layout, Checkpoint<S>& checkpoint) {
  const ResultReader file(path);
  if (file.text_attribute("/", "float_type") != float_type<S>)
    throw Error(path.string() + " belongs to a network of a different precision", Exit::damaged);
  checkpoint.step = Index(file.number_attribute("/", "step"));
  if (file.exists("/best/weights")) {
    checkpoint.best = checkpoint.network;
    read_state(file, path, "/best", layout, checkpoint.best);
  }
  read_state(file, path, "", layout, checkpoint.network);
  for (auto& [part, items] : checkpoint.parts) read_items(file, path, "/run/" + part, items);
  const Array carried = file.read("/run/carried");
  checkpoint.carried =
      as_matrix(std::span<const double>(carried.values), Index(carried.shape.at(1)), Index(carried.shape.at(0))).template cast<S>();
  checkpoint.rows.clear();
  for (const std::string& child : file.children("/rows")) read_rows(file, "/" + child, checkpoint.rows);
}

namespace {

/// A regular file that is what the index says.
bool is_whole(const fs::path& path, const CheckpointEntry& entry) {
  return fs::file_size(path) == entry.bytes && sha256_of_file(path) == entry.sum;
}

}  // namespace

void demand_whole(const fs::path& run, const std::string& which) {
  const fs::path path = network_path(run, which);
  for (const CheckpointEntry& entry : read_checkpoint_index(run))
    if (entry.file() == path.filename() && !is_whole(path, entry))
      throw Error(fmt::format("{} is damaged: it is not what was written", path.string()), Exit::damaged);
}

std::optional<fs::path> newest_checkpoint(const fs::path& run, const std::function<void(const std::string&)>& damaged) {
  if (const std::vector<fs::path> files = files_of_steps(run); !files.empty() && !has_checkpoint_index(run))
    throw Error(fmt::format("{} is missing, without which {} cannot be trusted; restore it, or move the run's folder away and run again",
                            (run / "checkpoints/index.json").string(), files.back().filename().string()),
                Exit::damaged);
  const std::vector<CheckpointEntry> entries = read_checkpoint_index(run);
  if (entries.empty()) return std::nullopt;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const fs::path path = run / "checkpoints" / entry->file();
    if (!fs::is_regular_file(path))
      damaged(fmt::format("{} is missing", path.string()));
    else if (!is_whole(path, *entry))
      damaged(fmt::format("{} is damaged: it is not what was written", path.string()));
    else
      return path;
  }
  throw Error(fmt::format("no checkpoint of {} is intact; move the folder away and run again", run.string()), Exit::damaged);
}

#define STIEFEL_INSTANTIATE(S)                                                                                              \
  template STIEFEL_API void write_network(const fs::path&, const Layout&, const NetworkState<S>&, Index);                   \
  template STIEFEL_API void write_diverged(const fs::path&, const Layout&, const NetworkState<S>&, const Batch<S>&, Index); \
  template STIEFEL_API Index read_network(const fs::path&, Network<S>&);                                                    \
  template STIEFEL_API void write_checkpoint(const fs::path&, const Layout&, const Checkpoint<S>&, Index, Index);           \
  template STIEFEL_API void read_checkpoint(const fs::path&, const Layout&, Checkpoint<S>&);
STIEFEL_INSTANTIATE(float)
STIEFEL_INSTANTIATE(double)

}  // namespace stiefel
