// One description of every structure serves both directions.
#include "results/analysis/run_message.hpp"

#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include <stiefel/error.hpp>

#include "record/hdf5.hpp"

namespace stiefel {
namespace {

class Sender {
 public:
  template <class T> void number(const T& value) {
    const auto wide = widen(value);
    bytes.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
  void raw(const void* from, std::size_t count) { bytes.append(static_cast<const char*>(from), count); }
  template <class T> static auto widen(T value) {
    if constexpr (std::is_floating_point_v<T>)
      return double(value);
    else
      return std::int64_t(value);
  }
  std::string bytes;
};

class Receiver {
 public:
  explicit Receiver(std::string_view bytes) : bytes_(bytes) {}
  template <class T> void number(T& value) {
    auto wide = Sender::widen(value);
    raw(&wide, sizeof wide);
    value = static_cast<T>(wide);
  }
  void raw(void* to, std::size_t count) {
    if (count > bytes_.size()) fail();
    if (count > 0) std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
  }
  /// Reads the length of a list whose items take at least `each` bytes. Throws Error if they cannot all be there.
  std::size_t length(std::size_t each) {
    std::uint64_t count = 0;
    number(count);
    if (count > bytes_.size() / each) fail();
    return std::size_t(count);
  }
  void end() const {
    if (!bytes_.empty()) fail();
  }

 private:
  [[noreturn]] static void fail() { throw Error("the data sent for a run is incomplete", Exit::damaged); }
  std::string_view bytes_;
};

template <class T> void pass(Sender& to, const T& value);
template <class T> void pass(Receiver& from, T& value);

template <class Way, class... T> void pass_all(Way& way, T&... values) { (pass(way, values), ...); }

// `Way` is Sender or Receiver; the structure is constant for the first.
template <class Way, class T> void fields(Way& way, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, RunRequest>)
    pass_all(way, value.paths, value.except, value.provenance, value.network, value.other, value.most_values,
             value.memory);
  else if constexpr (std::is_same_v<Plain, RunDataset>)
    pass_all(way, value.path, value.values, value.texts, value.shape, value.is_text, value.complex, value.scale,
             value.units, value.description);
  else if constexpr (std::is_same_v<Plain, PluginRow> || std::is_same_v<Plain, DatasetRow> ||
                     std::is_same_v<Plain, Segment>)
    Plain::each([&](const char*, auto field, auto&&...) { pass(way, value.*field); });
  else if constexpr (std::is_same_v<Plain, RunHeader>)
    pass_all(way, value.title, value.run_id, value.parameters, value.baseline, value.yaml, value.source,
             value.overrides, value.hash, value.origins, value.provenance, value.plugins, value.datasets,
             value.segments);
  else if constexpr (std::is_same_v<Plain, Status>)
    pass_all(way, value.state, value.message, value.exit_code, value.best_metric, value.best_step, value.cpu_seconds);
  else
    pass_all(way, value.unreadable, value.header, value.status, value.committed_step, value.configuration,
             value.datasets, value.differing);
}

template <class T> struct IsVector : std::false_type {};
template <class T> struct IsVector<std::vector<T>> : std::true_type {};
template <class T> struct IsMap : std::false_type {};
template <class T> struct IsMap<std::map<std::string, T>> : std::true_type {};

template <class T> void pass(Sender& to, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    to.number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    to.number(value.size());
    to.raw(value.data(), value.size());
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    to.number(value.size());
    to.raw(value.data(), value.size() * sizeof(double));
  } else if constexpr (IsVector<T>::value || IsMap<T>::value) {
    to.number(value.size());
    for (const auto& item : value) pass(to, item);
  } else if constexpr (requires { value.first; }) {
    pass_all(to, value.first, value.second);
  } else {
    fields(to, value);
  }
}

template <class T> void pass(Receiver& from, T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    from.number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value.resize(from.length(1));
    from.raw(value.data(), value.size());
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    value.resize(from.length(sizeof(double)));
    from.raw(value.data(), value.size() * sizeof(double));
  } else if constexpr (IsVector<T>::value) {
    for (std::size_t left = from.length(8); left > 0; --left) pass(from, value.emplace_back());
  } else if constexpr (IsMap<T>::value) {
    for (std::size_t left = from.length(8); left > 0; --left) {
      std::string key;
      pass(from, key);
      pass(from, value[key]);
    }
  } else if constexpr (requires { value.first; }) {
    pass_all(from, value.first, value.second);
  } else {
    fields(from, value);
  }
}

template <class T> T decode(std::string_view bytes) {
  Receiver from(bytes);
  T value;
  pass(from, value);
  from.end();
  return value;
}

}  // namespace

std::string encode(const RunRequest& request) {
  Sender to;
  pass(to, request);
  return std::move(to.bytes);
}
std::string encode(const RunData& run) {
  Sender to;
  pass(to, run);
  return std::move(to.bytes);
}
RunRequest decode_request(std::string_view bytes) { return decode<RunRequest>(bytes); }

RunData decode_run(std::string_view bytes) {
  RunData run = decode<RunData>(bytes);
  for (const RunDataset& dataset : run.datasets) {
    const bool pairs = !dataset.complex || (!dataset.shape.empty() && dataset.shape.back() == 2);
    if (!pairs ||
        hdf5::element_count(dataset.shape) != (dataset.is_text ? dataset.texts.size() : dataset.values.size()))
      throw Error(dataset.path + " has more or fewer numbers than its shape", Exit::damaged);
  }
  return run;
}

}  // namespace stiefel
