// Reading result files: attributes, texts and arrays by path.
#include "record/reader.hpp"

#include <fmt/format.h>

#include <stiefel/error.hpp>

#include "base/file_error.hpp"
#include "record/hdf5.hpp"

namespace stiefel {

struct ResultReader::Open {
  hdf5::File file;
  /// Calls use() with the group or dataset at `path`; both have attributes.
  template <class Use> auto with(const std::string& path, Use&& use) const {
    const hdf5::Group& root = file.root();
    if (path == "/") return use(root);
    if (!root.exists(path))
      throw Error(fmt::format("there is no {}{}", root.where(), path.substr(path.starts_with('/'))), Exit::damaged);
    return root.is_group(path) ? use(root.group(path)) : use(root.dataset(path));
  }
};

ResultReader::ResultReader(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path))
    throw Error(fmt::format("there is no result file {}: the run has not published results yet, or is somewhere else",
                            path.string()));
  open_ = std::make_unique<Open>(Open{hdf5::File::open(path)});
  if (has_attribute("/", "format_version")) refuse_other_format(path, number_attribute("/", "format_version"));
}
ResultReader::~ResultReader() = default;

const hdf5::Group& ResultReader::root() const { return open_->file.root(); }

bool ResultReader::exists(const std::string& path) const { return open_->file.root().exists(path); }

bool ResultReader::is_group(const std::string& path) const { return path == "/" || open_->file.root().is_group(path); }

std::vector<std::string> ResultReader::children(const std::string& group) const {
  return group == "/" ? open_->file.root().children() : open_->file.root().group(group).children();
}

std::vector<std::string> ResultReader::attributes(const std::string& path) const {
  return open_->with(path, [](const hdf5::Object& object) { return object.attribute_names(); });
}

bool ResultReader::has_attribute(const std::string& path, const std::string& name) const {
  return open_->with(path, [&](const hdf5::Object& object) { return object.has_attribute(name); });
}

std::string ResultReader::text_attribute(const std::string& path, const std::string& name) const {
  return open_->with(path, [&](const hdf5::Object& object) { return object.text_attribute(name); });
}

double ResultReader::number_attribute(const std::string& path, const std::string& name) const {
  return open_->with(path, [&](const hdf5::Object& object) { return object.number_attribute(name); });
}

std::vector<std::uint64_t> ResultReader::shape(const std::string& path) const {
  return open_->file.root().dataset(path).shape();
}

Array ResultReader::read(const std::string& path) const {
  const hdf5::Dataset dataset = open_->file.root().dataset(path);
  Array array{dataset.read(), dataset.shape()};
  if (dataset.type() == hdf5::Type::complex) array.shape.push_back(2);
  return array;
}

std::vector<std::string> ResultReader::texts(const std::string& path) const {
  return open_->file.root().dataset(path).read_text();
}

std::string ResultReader::text(const std::string& path) const {
  const std::vector<std::string> all = texts(path);
  if (all.size() != 1) throw Error(fmt::format("{} holds {} texts instead of one", path, all.size()), Exit::damaged);
  return all[0];
}

}  // namespace stiefel
