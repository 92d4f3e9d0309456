#include "tasks/formats/named_arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/algorithm/string.hpp>
#include <vector>

#include <stiefel/error.hpp>

#include "record/hdf5.hpp"
#include "tasks/formats/npz.hpp"

namespace stiefel {
namespace {

bool is_npz(const std::string& file) { return boost::iends_with(file, ".npz"); }

/// HDF5 converts integers and floating-point numbers of any size and order of bytes. Other types are refused.
class Hdf5Arrays : public NamedArrays {
 public:
  explicit Hdf5Arrays(const std::string& path) : path_(path), file_(refusing([&] { return hdf5::File::open(path); })) {}

  bool has(const std::string& name) const override {
    return refusing([&] { return file_.root().exists(name) && !file_.root().is_group(name); });
  }

  Npy read(const std::string& name) const override {
    if (!has(name)) {
      std::vector<std::string> names;
      list(file_.root(), "", names);
      throw Error(fmt::format("{}: there is no array {}; it has {}", path_, name, fmt::join(names, ", ")), Exit::data);
    }
    return refusing([&] {
      const hdf5::Dataset dataset = file_.root().dataset(name);
      const hdf5::Shape shape = dataset.shape();
      Npy array{{shape.begin(), shape.end()}, dataset.read()};
      if (array.values.size() != hdf5::element_count(shape))
        throw Error(dataset.where() + " holds complex numbers", Exit::data);
      return array;
    });
  }

 private:
  static void list(const hdf5::Group& group, const std::string& prefix, std::vector<std::string>& names) {
    constexpr std::size_t most_names = 20;
    for (const std::string& name : group.children()) try {
        if (names.size() == most_names) return;
        if (group.is_group(name))
          list(group.group(name), prefix + name + "/", names);
        else
          names.push_back(prefix + name);
      } catch (const Error&) {
        continue;  // a link, or a damaged group
      }
  }

  /// What the reader of results says of a file, without its advice on runs.
  template <class Action> static auto refusing(Action action) -> decltype(action()) {
    try {
      return action();
    } catch (const Error& e) {
      const std::string said = e.what();
      throw Error(said.substr(0, said.find(';')), Exit::data);
    }
  }

  std::string path_;
  hdf5::File file_;
};

}  // namespace

bool has_named_arrays(const std::string& file) {
  return is_npz(file) || boost::iends_with(file, ".h5") || boost::iends_with(file, ".hdf5");
}

std::unique_ptr<NamedArrays> open_named_arrays(const std::string& path) {
  if (is_npz(path)) return std::make_unique<NpzFile>(path);
  return std::make_unique<Hdf5Arrays>(path);
}

}  // namespace stiefel
