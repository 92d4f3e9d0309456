#include "training/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "base/file_error.hpp"
#include "base/say.hpp"
#include "base/sha256.hpp"
#include "record/hdf5.hpp"
#include "record/header_file.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "training/checkpoint_index.hpp"
#include "training/own_sum.hpp"
#include "training/trained.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

/// Calls f(T()), where T is the type of an item's numbers.
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

// ---- writing

template <class T> void write_numbers(const hdf5::Group& group, const std::string& name, const hdf5::Shape& shape,
                                      std::span<const T> numbers) {
  hdf5::Dataset dataset = group.create_dataset(name, {hdf5::type_for<T>, shape, {}});
  dataset.write(0, numbers);
  dataset.close();
}

void write_items(const hdf5::Group& group, const StateItems& items) {
  for (const auto& [name, item] : items)
    with_type(item.type, [&]<class T>(T) {
      std::vector<T> numbers(item.bytes.size() / sizeof(T));
      if (!numbers.empty()) std::memcpy(numbers.data(), item.bytes.data(), item.bytes.size());
      write_numbers<T>(group, name, {numbers.size()}, numbers);
    });
}

template <class S> std::span<const S> numbers_of(const Matrix<S>& matrix) {
  return {matrix.data(), std::size_t(matrix.size())};
}

template <class S> void write_state(const hdf5::Group& group, const Layout& layout, const NetworkState<S>& state) {
  hdf5::Group weights = group.make_group("weights");
  const auto blocks = layout.all(state.values.data());
  for (Index i = 0; i < blocks.count(); ++i) {
    const BlockSpec& shape = layout.block(i);
    const Matrix<S> row_major = as_matrix(blocks[i], shape.rows, shape.cols).transpose();
    write_numbers<S>(weights, layout.block(i).name, {std::uint64_t(shape.rows), std::uint64_t(shape.cols)},
                     numbers_of(row_major));
  }
  weights.close();
  for (const auto& [plugin, items] : state.plugins) write_items(group.make_group("state/" + plugin), items);
}

/// Replaces `path` by a file whose root group fill(group) writes. Calls list(file) before that is renamed to `path`.
template <class F, class L>
void replace_hdf5(const fs::path& path, Index step, const char* float_type, F&& fill, L&& list) {
  fs::create_directories(path.parent_path());
  AtomicFile target(path);
  hdf5::File file = hdf5::File::create(target.temporary(), sum_block);
  file.root().set_number("format_version", format_version, hdf5::Type::i4);
  file.root().set_number("step", double(step), hdf5::Type::i8);
  file.root().set_text("float_type", float_type);
  fill(file.root());
  file.close();
  write_own_sum(target.temporary());
  const ResultReader back(target.temporary());
  if (back.number_attribute("/", "step") != double(step))
    throw Error(
        path.string() + " does not read back the step that was written; the disk or its file system cannot be trusted",
        Exit::damaged);
  list(target.temporary());
  target.replace();
  target.sync_directory();
}

template <class F>
void replace_network(const fs::path& run, const std::string& which, Index step, const char* float_type, F&& fill) {
  const fs::path path = RunFolder{run}.network(which);
  replace_hdf5(path, step, float_type, fill,
               [&](const fs::path& content) { list_file(run, path.filename(), content); });
}

template <class S> constexpr const char* float_type = sizeof(S) == 4 ? "float32" : "float64";

// ---- reading

/// Reads a dataset. Throws Misfit if it does not have `count` numbers.
template <class T> std::vector<T> read_numbers(const ResultReader& file, const fs::path& path, const std::string& name,
                                               std::size_t count) {
  if (!file.exists(name))
    throw Misfit(fmt::format("{} has no {}: it belongs to a different network", path.string(), name), Exit::damaged);
  std::vector<T> values = file.root().dataset(name).template read<T>();
  if (values.size() != count)
    throw Misfit(fmt::format("{}: {} has {} numbers, but {} are needed", path.string(), name, values.size(), count),
                 Exit::damaged);
  return values;
}

/// Throws Misfit if a group has children that are not `expected`, which nothing would read.
void demand_no_other(const ResultReader& file, const fs::path& path, const std::string& group, const auto& expected) {
  if (!file.exists(group)) return;
  for (const std::string& child : file.children(group))
    if (!expected.contains(child))
      throw Misfit(
          fmt::format("{} has {}/{}: it belongs to a different network or optimizer", path.string(), group, child),
          Exit::damaged);
}

void read_items(const ResultReader& file, const fs::path& path, const std::string& group, StateItems& items) {
  demand_no_other(file, path, group, items);
  for (auto& [name, item] : items)
    with_type(item.type, [&]<class T>(T) {
      const std::vector<T> numbers = read_numbers<T>(file, path, group + "/" + name, item.bytes.size() / sizeof(T));
      if (!numbers.empty()) std::memcpy(item.bytes.data(), numbers.data(), item.bytes.size());
    });
}

template <class S> void read_block(const ResultReader& file, const fs::path& path, const std::string& group,
                                   const BlockSpec& shape, std::span<S> block) {
  const std::string name = group + "/weights/" + shape.name;
  const auto values = read_numbers<S>(file, path, name, block.size());
  const hdf5::Shape needed{std::uint64_t(shape.rows), std::uint64_t(shape.cols)},
      found = file.root().dataset(name).shape();
  if (found != needed)
    throw Misfit(fmt::format("{}: {} is {}, but {} is needed", path.string(), name, fmt::join(found, " × "),
                             fmt::join(needed, " × ")),
                 Exit::damaged);
  as_matrix(block, shape.rows, shape.cols) = as_matrix(std::span<const S>(values), shape.cols, shape.rows).transpose();
}

template <class S> void read_state(const ResultReader& file, const fs::path& path, const std::string& group,
                                   const Layout& layout, NetworkState<S>& state) {
  const auto blocks = layout.all(state.values.data());
  for (Index i = 0; i < blocks.count(); ++i) read_block(file, path, group, layout.block(i), blocks[i]);
  demand_no_other(file, path, group + "/state", state.plugins);
  for (auto& [plugin, items] : state.plugins) read_items(file, path, group + "/state/" + plugin, items);
}

// ---- sums

void warn_of_no_sum(const fs::path& path) {
  static std::once_flag said;
  std::call_once(said, [&] {
    say("{} has no checksum: it was written by an older version of stiefel, and damage may go undetected\n",
        path.string());
  });
}

[[noreturn]] void refuse_damaged(const fs::path& path, const char* otherwise) {
  throw Error(
      fmt::format("{} is damaged: it is not what was written; restore it from a copy, or {}", path.string(), otherwise),
      Exit::damaged);
}

}  // namespace

template <class S> void write_network(const fs::path& run, const std::string& which, const Layout& layout,
                                      const NetworkState<S>& state, Index step, const Trained& trained) {
  replace_network(run, which, step, float_type<S>, [&](const hdf5::Group& root) {
    write_state(root, layout, state);
    write_trained(root, trained);
  });
}

template <class S> void write_diverged(const fs::path& run, const Layout& layout, const NetworkState<S>& state,
                                       const Batch<S>& batch, Index step) {
  replace_network(run, "diverged", step, float_type<S>, [&](const hdf5::Group& root) {
    write_state(root, layout, state);
    const hdf5::Group group = root.make_group("batch");
    const auto list = [&]<class T>(const std::string& name, const std::vector<T>& values) {
      if (!values.empty()) write_numbers<T>(group, name, {values.size()}, values);
    };
    const auto integers = [](const std::vector<std::int32_t>& values) {
      return std::vector<std::int64_t>(values.begin(), values.end());
    };
    const auto columns = [&](const std::string& name, CMat<S> values) {
      const Matrix<S> copy = values;
      if (copy.size() > 0)
        write_numbers<S>(group, name, {std::uint64_t(copy.cols()), std::uint64_t(copy.rows())}, numbers_of(copy));
    };
    std::vector<std::int64_t> lengths;
    for (Index b = 0; b < batch.sequences(); ++b) lengths.push_back(batch.length(b));
    list("lengths", lengths);
    list("symbols", integers(batch.symbols()));
    list("labels", integers(batch.labels()));
    list("weights", batch.weights());
    columns("inputs", batch.inputs());
    columns("targets", batch.targets());
  });
}

template <class S> Index read_network(const fs::path& path, Network<S>& network) {
  demand_whole(path.parent_path().parent_path(), path.filename());
  const ResultReader file(path);
  NetworkState<S> state = network.state();
  state.values.resize(std::size_t(network.layout().size()));
  read_state(file, path, "", network.layout(), state);
  network.restore(state);
  return Index(file.number_attribute("/", "step"));
}

template <class S>
void read_blocks(const fs::path& path, Network<S>& network, const std::function<bool(const std::string&)>& selected) {
  if (!has_right_sum(path)) warn_of_no_sum(path);
  const ResultReader file(path);
  if (!file.exists("/weights"))
    throw Error(path.string() + " has no network; name best.h5, last.h5 or step_N.h5 in the checkpoints of a run");
  const Layout& layout = network.layout();
  const std::vector<std::string> theirs = file.children("/weights");
  const auto misfit = [&](const std::string& what) {
    return Misfit(fmt::format("{}. The blocks of that network are {}, and those of this one {}", what,
                              fmt::join(theirs, ", "), layout.names()));
  };
  for (const std::string& name : theirs)
    if (selected(name) && layout.find(name) < 0)
      throw misfit(fmt::format("{} has the block {}, which this network does not have", path.string(), name));
  try {
    NetworkState<S> state = network.state();
    const Blocks<S> blocks = layout.all(state.values.data());
    for (Index i = 0; i < blocks.count(); ++i)
      if (selected(layout.block(i).name)) read_block(file, path, "", layout.block(i), blocks[i]);
    for (const auto& [name, map, part] : network.model().maps) {
      const auto first = layout.blocks().begin() + part.first;
      const bool whole = std::all_of(first, first + part.count, [&](const BlockSpec& b) { return selected(b.name); });
      if (part.count > 0 ? whole : selected(name + ".")) read_items(file, path, "/state/" + name, state.plugins[name]);
    }
    network.restore(state);
  } catch (const Misfit& error) {
    throw misfit(error.what());
  }
}

template <class S> void write_checkpoint(const fs::path& run, const Layout& layout, const Checkpoint<S>& checkpoint,
                                         Index keep, Index every, const Trained& trained) {
  ListedFile entry{step_file(checkpoint.step), checkpoint.step, 0, ""};
  const auto fill = [&](const hdf5::Group& root) {
    write_state(root, layout, checkpoint.network);
    write_trained(root, trained);
    if (!checkpoint.best.values.empty()) write_state(root.make_group("best"), layout, checkpoint.best);
    for (const auto& [part, items] : checkpoint.parts) write_items(root.make_group("run/" + part), items);
    const hdf5::Group rest = root.make_group("run");
    write_numbers<S>(rest, "carried",
                     {std::uint64_t(checkpoint.carried.cols()), std::uint64_t(checkpoint.carried.rows())},
                     numbers_of(checkpoint.carried));
    hdf5::Group rows = root.make_group("rows");
    for (const auto& [group, count] : checkpoint.rows) {
      hdf5::Group table = rows.make_group(group.substr(1));
      table.set_number("rows", double(count), hdf5::Type::i8);
      table.close();
    }
    rows.close();
  };
  replace_hdf5(listed_path(run, entry.file), checkpoint.step, float_type<S>, fill, [&](const fs::path& content) {
    entry.bytes = fs::file_size(content);
    entry.sum = sha256_of_file(content);
  });

  CheckpointIndex index = read_checkpoint_index(run);
  std::vector<ListedFile> entries = std::exchange(index.checkpoints, {});
  std::erase_if(entries, [&](const ListedFile& other) { return other.step >= entry.step; });
  entries.push_back(entry);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool stays = i + std::size_t(keep) >= entries.size() || (every > 0 && entries[i].step % every == 0);
    if (stays) index.checkpoints.push_back(entries[i]);
  }
  write_checkpoint_index(run, index);
  remove_unlisted_checkpoints(run);
}

namespace {

/// checkpoints/step_*.h5, sorted.
std::vector<fs::path> files_of_steps(const fs::path& run) {
  std::vector<fs::path> files;
  if (!fs::exists(RunFolder{run}.checkpoints())) return files;
  for (const auto& entry : fs::directory_iterator(RunFolder{run}.checkpoints())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step_") && name.ends_with(".h5")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

void remove_unlisted_checkpoints(const fs::path& run) {
  if (!has_checkpoint_index(run)) return;
  const std::vector<ListedFile> listed = read_checkpoint_index(run).checkpoints;
  for (const fs::path& file : files_of_steps(run))
    if (std::ranges::find(listed, file.filename().string(), &ListedFile::file) == listed.end()) fs::remove(file);
}

namespace {

/// Reads the number of rows of `group` and of the groups in it from /rows.
void read_rows(const ResultReader& file, const std::string& group, RowCounts& rows) {
  const std::string path = "/rows" + group;
  if (file.has_attribute(path, "rows")) rows[group] = std::uint64_t(file.number_attribute(path, "rows"));
  for (const std::string& child : file.children(path)) read_rows(file, group + "/" + child, rows);
}

}  // namespace

template <class S> void read_checkpoint(const fs::path& path, const Layout& layout, Checkpoint<S>& checkpoint) {
  const ResultReader file(path);
  if (file.text_attribute("/", "float_type") != float_type<S>)
    throw Misfit(path.string() + " belongs to a network of a different precision", Exit::damaged);
  checkpoint.step = Index(file.number_attribute("/", "step"));
  if (file.exists("/best/weights")) {
    checkpoint.best = checkpoint.network;
    read_state(file, path, "/best", layout, checkpoint.best);
  }
  read_state(file, path, "", layout, checkpoint.network);
  for (auto& [part, items] : checkpoint.parts) read_items(file, path, "/run/" + part, items);
  const hdf5::Dataset carried = file.root().dataset("/run/carried");
  const std::vector<S> numbers = carried.template read<S>();
  checkpoint.carried =
      as_matrix(std::span<const S>(numbers), Index(carried.shape().at(1)), Index(carried.shape().at(0)));
  checkpoint.rows.clear();
  for (const std::string& child : file.children("/rows")) read_rows(file, "/" + child, checkpoint.rows);
}

namespace {

/// Throws Error (Exit::damaged) if the run has lost its index, which it had from its start.
void require_index(const fs::path& run, const std::string& file) {
  if (!has_checkpoint_index(run))
    throw Error(fmt::format("{} is missing, without which {} cannot be trusted; restore it, or move the run's folder "
                            "away and run again",
                            (run / "checkpoints/index.json").string(), file),
                Exit::damaged);
}

}  // namespace

namespace {

/// Whether config.yaml equals the copy in results.h5, from which a user may have restored it.
bool is_that_of_results(const fs::path& run) {
  try {
    demand_whole(run, "results.h5");  // libhdf5 must not read a damaged file
    return read_header(ResultReader(RunFolder{run}.results()), false).yaml == file_content(RunFolder{run}.config());
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void demand_whole(const fs::path& run, const std::string& file) {
  const fs::path path = listed_path(run, file);
  if (!fs::is_regular_file(path)) return;  // whoever opens it reports that
  require_index(run, file);
  std::vector<ListedFile> before;
  while (true) {
    const std::vector<ListedFile> entries = read_checkpoint_index(run).entries_of(file);
    if (entries.empty()) {
      if (file == "config.yaml") return;  // the run's networks, without checksums too, cause the warning
      warn_of_no_sum(path);
      return;
    }
    if (std::ranges::any_of(entries, [&](const ListedFile& entry) { return entry.is_content_of(path); })) return;
    if (entries == before) break;  // else another process has just replaced the file
    before = entries;
  }
  if (file == "config.yaml" && is_that_of_results(run)) return;
  if (file == "config.yaml")
    throw Error(fmt::format("{} was edited or is damaged; restore it from /config/yaml of its results.h5, and change "
                            "keys with `stiefel resume RUN key.path=value`",
                            path.string()),
                Exit::damaged);
  refuse_damaged(path,
                 file == "results.h5" ? "move the run's folder away and run again" : "name another network of the run");
}

bool has_right_sum(const fs::path& network) {
  const fs::path run = network.parent_path().parent_path();
  const bool listed = network.parent_path() == RunFolder{run}.checkpoints() && has_checkpoint_index(run) &&
                      !read_checkpoint_index(run).entries_of(network.filename()).empty();
  if (listed) {
    demand_whole(run, network.filename());
    return true;
  }
  const OwnSum sum = own_sum(network);
  if (sum == OwnSum::wrong) refuse_damaged(network, "copy the network of its run again");
  return sum == OwnSum::right;
}

std::optional<fs::path> newest_checkpoint(const fs::path& run, const std::function<void(const std::string&)>& damaged,
                                          Index end) {
  if (const std::vector<fs::path> files = files_of_steps(run); !files.empty())
    require_index(run, files.back().filename());
  std::vector<ListedFile> entries = read_checkpoint_index(run).checkpoints;
  std::erase_if(entries, [&](const ListedFile& entry) { return entry.step >= end; });
  if (entries.empty()) return std::nullopt;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const fs::path path = listed_path(run, entry->file);
    if (!fs::is_regular_file(path))
      damaged(fmt::format("{} is missing", path.string()));
    else if (!entry->is_content_of(path))
      damaged(fmt::format("{} is damaged: it is not what was written", path.string()));
    else
      return path;
  }
  throw Error(
      fmt::format("no checkpoint of {} is intact, so it cannot be resumed; to start over, move the folder away and "
                  "run again",
                  run.string()),
      Exit::damaged);
}

#define STIEFEL_INSTANTIATE(S)                                                                                         \
  template STIEFEL_API void write_network(const fs::path&, const std::string&, const Layout&, const NetworkState<S>&,  \
                                          Index, const Trained&);                                                      \
  template STIEFEL_API void write_diverged(const fs::path&, const Layout&, const NetworkState<S>&, const Batch<S>&,    \
                                           Index);                                                                     \
  template STIEFEL_API Index read_network(const fs::path&, Network<S>&);                                               \
  template STIEFEL_API void read_blocks(const fs::path&, Network<S>&, const std::function<bool(const std::string&)>&); \
  template STIEFEL_API void write_checkpoint(const fs::path&, const Layout&, const Checkpoint<S>&, Index, Index,       \
                                             const Trained&);                                                          \
  template STIEFEL_API void read_checkpoint(const fs::path&, const Layout&, Checkpoint<S>&);
STIEFEL_INSTANTIATE(float)
STIEFEL_INSTANTIATE(double)

}  // namespace stiefel
