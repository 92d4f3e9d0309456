// NumPy's files: .npy, and .npz, a ZIP archive of them.
#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <list>
#include <span>
#include <utility>

#include <stiefel/error.hpp>

#include "results/analysis/run_tables.hpp"

namespace stiefel {
namespace {

/// The bytes before the numbers; their length is a multiple of 64.
std::string header_of(const std::string& type, const std::vector<std::uint64_t>& shape) {
  std::string sizes;
  for (std::uint64_t size : shape) sizes += std::to_string(size) + ", ";
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.resize(sizes.size() - 1);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  constexpr std::size_t before = 10;  // "\x93NUMPY", version 1.0, length
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header = "\x93NUMPY\x01";
  header += '\0';
  header += char(text.size() & 0xFF);
  header += char(text.size() >> 8);
  return header + text;
}

/// In NumPy's array every text takes as much as the longest.
std::string npy_of_texts(const std::vector<std::string>& texts, const std::vector<std::uint64_t>& shape, const std::string& name) {
  constexpr std::size_t most = std::size_t(1) << 28;
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  if (longest > most / std::max<std::size_t>(texts.size(), 1))
    throw Error(fmt::format("{} cannot be an array of NumPy: {} texts, of which the longest has {} bytes", name, texts.size(), longest),
                Exit::damaged);
  std::string bytes = header_of(fmt::format("|S{}", longest), shape);
  for (const std::string& text : texts) bytes.append(text).append(longest - text.size(), '\0');
  return bytes;
}

class ZipArchive {
 public:
  explicit ZipArchive(const std::filesystem::path& path) : path_(path) {
    int fault = 0;
    archive_ = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &fault);
    if (archive_) return;
    zip_error_t error;
    zip_error_init_with_code(&error, fault);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail(reason);
  }
  ~ZipArchive() {
    if (archive_) zip_discard(archive_);
  }
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  /// An entry of both parts; `rest` must live until close().
  void add(const std::string& name, std::string begin, std::span<const double> rest = {}) {
    const std::string& kept = kept_.emplace_back(std::move(begin));
    // libzip takes what it only reads as not constant.
    zip_buffer_fragment_t parts[] = {{reinterpret_cast<zip_uint8_t*>(const_cast<char*>(kept.data())), kept.size()},
                                     {reinterpret_cast<zip_uint8_t*>(const_cast<double*>(rest.data())), rest.size_bytes()}};
    zip_source_t* source = zip_source_buffer_fragment(archive_, parts, rest.empty() ? 1 : 2, 0);
    const zip_int64_t at = source ? zip_file_add(archive_, name.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
    if (at < 0) {
      if (source) zip_source_free(source);
      fail(fmt::format("{}: {}", name, zip_strerror(archive_)));
    }
    // Numbers of double precision gain little by more work.
    if (zip_set_file_compression(archive_, zip_uint64_t(at), ZIP_CM_DEFLATE, 1) != 0) fail(zip_strerror(archive_));
    // The same run gives the same bytes.
    zip_file_set_mtime(archive_, zip_uint64_t(at), 315532800, 0);
  }

  void close() {
    if (zip_close(archive_) != 0) fail(zip_strerror(archive_));
    archive_ = nullptr;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(fmt::format("{} cannot be written: {}", path_.string(), reason), Exit::exhausted);
  }
  std::filesystem::path path_;
  std::list<std::string> kept_;
  zip_t* archive_ = nullptr;
};

}  // namespace

std::string npy_header(std::vector<std::uint64_t> shape, bool complex) {
  if (complex) shape.pop_back();
  return header_of(complex ? "<c16" : "<f8", shape);
}

void export_npz(const RunData& run, const std::filesystem::path& file) {
  ZipArchive archive(file);
  for (const RunDataset& dataset : run.datasets) {
    const std::string name = dataset.path.substr(1) + ".npy";
    if (dataset.is_text)
      archive.add(name, npy_of_texts(dataset.texts, dataset.shape, dataset.path));
    else
      archive.add(name, npy_header(dataset.shape, dataset.complex), dataset.values);
  }
  archive.add("config.npy", npy_of_texts({run.header.yaml}, {}, "/config/yaml"));
  archive.close();
}

}  // namespace stiefel
