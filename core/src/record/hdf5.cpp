// Errors, types, groups and files of the layer over HDF5's C library.
#include "record/hdf5.hpp"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <cstdlib>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <stiefel/error.hpp>

#include "base/file_error.hpp"
#include "record/hdf5_detail.hpp"

namespace stiefel::hdf5 {
namespace {

static_assert(std::is_integral_v<hid_t> && sizeof(hid_t) == sizeof(std::int64_t));

struct Stack {
  std::string cause;             // description by the innermost function
  const char* damage = nullptr;  // what is wrong with the whole file
  int error_number = 0;          // of the operating system, or 0
  bool out_of_memory = false;    // not the file's fault
};

/// The errno in an error description of HDF5, which reports it only as text; 0 if there is none.
int error_number_in(const std::string& description) {
  static constexpr std::string_view mark = "errno = ";
  const std::size_t at = description.find(mark);
  return at == description.npos ? 0 : std::atoi(description.c_str() + at + mark.size());
}

herr_t collect(unsigned, const H5E_error2_t* error, void* to) {
  Stack& stack = *static_cast<Stack*>(to);
  stack.cause = error->desc ? error->desc : "";
  if (const int number = error_number_in(stack.cause)) stack.error_number = number;
  if (error->min_num == H5E_TRUNCATED) stack.damage = "truncated";
  if (error->min_num == H5E_NOTHDF5) stack.damage = "not an HDF5 file";
  if (error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC) stack.out_of_memory = true;
  return 0;
}

/// Turns off HDF5's file locks, which some network file systems refuse. They are not needed: a file that is being
/// written has another name until it is complete.
Handle file_access() {
  Handle list = property_list(H5P_FILE_ACCESS);
  ok(H5Pset_file_locking(list.id(), false, true), "leave out locks in", "a property list");
  return list;
}

Handle complex_type(hid_t part) {
  const std::size_t bytes = sizeof(double);
  Handle type(ok(H5Tcreate(H5T_COMPOUND, 2 * bytes), "make", "the complex type"), H5Tclose);
  ok(H5Tinsert(type.id(), "r", 0, part), "fill", "the complex type");
  ok(H5Tinsert(type.id(), "i", bytes, part), "fill", "the complex type");
  return type;
}

std::string child(const std::string& where, const std::string& path) {
  return path.starts_with('/') ? where.substr(0, where.find(":/") + 1) + path
                               : where + (where.ends_with('/') ? "" : "/") + path;
}

/// Throws Error (Exit::damaged) if the numbers of a dataset are in another file.
void refuse_data_elsewhere(const Handle& dataset, const std::string& where) {
  const Handle creation(ok(H5Dget_create_plist(dataset.id()), "examine", where), H5Pclose);
  if (H5Pget_layout(creation.id()) == H5D_VIRTUAL || H5Pget_external_count(creation.id()) > 0)
    throw Error(where + " takes its numbers from another file, which stiefel neither writes nor follows",
                Exit::damaged);
}

}  // namespace

[[noreturn]] void fail(const char* doing, const std::string& where) {
  Stack stack;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, collect, &stack);
  H5Eclear2(H5E_DEFAULT);
  const std::string what = fmt::format("HDF5 could not {} {}", doing, where);
  if (stack.out_of_memory) throw Error(what + ": out of memory; free some", Exit::exhausted);
  if (stack.damage && stack.error_number == 0)
    throw Error(
        fmt::format("{} is damaged: it is {}; restore it from a copy, or move the run's folder away and run again",
                    where, stack.damage),
        Exit::damaged);
  if (stack.error_number == 0)
    throw Error(fmt::format("{}: {}", what, stack.cause.empty() ? "no reason given" : stack.cause), Exit::damaged);
  const Error refused = system_error(what + ": ", stack.error_number);
  throw Error(refused.what(), refused.code() == Exit::exhausted ? Exit::exhausted : Exit::damaged);
}

void prepare_thread() {
  static const herr_t no_exit_handler = H5dont_atexit();
  thread_local const herr_t silent = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  (void)no_exit_handler;
  (void)silent;
}

Handle property_list(hid_t kind) { return {ok(H5Pcreate(kind), "make", "a property list"), H5Pclose}; }

Handle text_type() {
  Handle type(ok(H5Tcopy(H5T_C_S1), "make", "the text type"), H5Tclose);
  ok(H5Tset_size(type.id(), H5T_VARIABLE), "size", "the text type");
  ok(H5Tset_cset(type.id(), H5T_CSET_UTF8), "set UTF-8 of", "the text type");
  return type;
}

Handle disk_type(Type type) {
  switch (type) {
    case Type::complex:
      return complex_type(H5T_IEEE_F64LE);
    case Type::text:
      return text_type();
    case Type::f8:
      return {ok(H5Tcopy(H5T_IEEE_F64LE), "make", "a type"), H5Tclose};
    case Type::f4:
      return {ok(H5Tcopy(H5T_IEEE_F32LE), "make", "a type"), H5Tclose};
    case Type::i8:
      return {ok(H5Tcopy(H5T_STD_I64LE), "make", "a type"), H5Tclose};
    case Type::i4:
      return {ok(H5Tcopy(H5T_STD_I32LE), "make", "a type"), H5Tclose};
    case Type::u1:
      return {ok(H5Tcopy(H5T_STD_U8LE), "make", "a type"), H5Tclose};
  }
  std::abort();
}

Handle memory_type(Type type, Type number) {
  if (type == Type::complex) return complex_type(H5T_NATIVE_DOUBLE);
  const hid_t native = number == Type::f8   ? H5T_NATIVE_DOUBLE
                       : number == Type::f4 ? H5T_NATIVE_FLOAT
                                            : H5T_NATIVE_INT64;
  return {ok(H5Tcopy(native), "make", "a type"), H5Tclose};
}

Type type_of(hid_t type, const std::string& where) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return H5Tget_size(type) == 4 ? Type::f4 : Type::f8;
    case H5T_STRING:
      return Type::text;
    case H5T_INTEGER:
      return H5Tget_size(type) == 1 ? Type::u1 : H5Tget_size(type) == 4 ? Type::i4 : Type::i8;
    case H5T_ENUM:  // booleans
      return Type::u1;
    case H5T_COMPOUND:
      if (H5Tget_nmembers(type) == 2 && H5Tget_member_index(type, "r") == 0 && H5Tget_member_index(type, "i") == 1)
        return Type::complex;
      break;
    default:
      break;
  }
  throw Error(where + " holds a type that stiefel does not write; is the file a result?", Exit::damaged);
}

Handle space_of(const Shape& shape, bool extendible, const std::string& where) {
  if (shape.empty()) return {ok(H5Screate(H5S_SCALAR), "describe", where), H5Sclose};
  std::vector<hsize_t> size(shape.begin(), shape.end()), most = size;
  if (extendible) most[0] = H5S_UNLIMITED;
  return {ok(H5Screate_simple(int(size.size()), size.data(), most.data()), "describe", where), H5Sclose};
}

std::uint64_t element_count(const Shape& shape) {
  std::uint64_t count = 1;
  for (std::uint64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count))
      throw Error("an HDF5 array has an impossible number of elements; the file is damaged", Exit::damaged);
  return count;
}

std::string library_version() {
  prepare_thread();
  unsigned major = 0, minor = 0, release = 0;
  ok(H5get_libversion(&major, &minor, &release), "tell its", "version");
  return fmt::format("{}.{}.{}", major, minor, release);
}

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, -1);
    close_ = other.close_;
  }
  return *this;
}

bool Handle::reset() noexcept {
  if (id_ < 0) return true;
  return close_(std::exchange(id_, -1)) >= 0;
}

Group Group::make_group(const std::string& path) const {
  const Handle groups = property_list(H5P_GROUP_CREATE);
  ok(H5Pset_link_creation_order(groups.id(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "prepare", where_);
  // One level at a time, because groups that HDF5 creates on the way do not track the order of their links.
  std::string prefix;
  for (std::size_t start = path.find_first_not_of('/'); start < path.size();) {
    const std::size_t stop = std::min(path.find('/', start), path.size());
    prefix = path.substr(0, stop);
    if (!exists(prefix)) {
      Handle made(
          ok(H5Gcreate2(id(), prefix.c_str(), H5P_DEFAULT, groups.id(), H5P_DEFAULT), "create a group in", where_),
          H5Gclose);
      if (!made.reset()) fail("close a group in", where_);
    }
    start = path.find_first_not_of('/', stop);
  }
  return group(prefix.empty() ? "." : prefix);
}

Dataset Group::create_dataset(const std::string& name, const Layout& layout) const {
  const std::string where = where_ + (where_.ends_with('/') ? "" : "/") + name;
  const Handle type = disk_type(layout.type), creation = property_list(H5P_DATASET_CREATE);
  const Handle space = space_of(layout.shape, !layout.chunk.empty(), where);
  ok(H5Pset_obj_track_times(creation.id(), false), "prepare", where);
  if (!layout.chunk.empty()) {
    const std::vector<hsize_t> chunk(layout.chunk.begin(), layout.chunk.end());
    ok(H5Pset_chunk(creation.id(), int(chunk.size()), chunk.data()), "set the chunks of", where);
    if (layout.type != Type::text) {
      ok(H5Pset_shuffle(creation.id()), "set the filters of", where);
      ok(H5Pset_deflate(creation.id(), 4), "set the filters of", where);
      ok(H5Pset_fletcher32(creation.id()), "set the filters of", where);
    }
    const double missing[2] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    if (layout.type == Type::f8 || layout.type == Type::f4 || layout.type == Type::complex)
      ok(H5Pset_fill_value(creation.id(), memory_type(layout.type, Type::f8).id(), missing), "set the fill value of",
         where);
  }
  return {Handle(ok(H5Dcreate2(id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                    "create", where),
                 H5Dclose),
          where};
}

void Group::remove(const std::string& path) const {
  ok(H5Ldelete(id(), path.c_str(), H5P_DEFAULT), "remove", child(where_, path));
}

bool Group::exists(const std::string& path) const {
  // H5Lexists fails unless all groups above a link exist.
  for (std::size_t start = path.find_first_not_of('/'); start < path.size();) {
    const std::size_t stop = std::min(path.find('/', start), path.size());
    const std::string step = path.substr(0, stop);
    if (ok(H5Lexists(id(), step.c_str(), H5P_DEFAULT), "look into", where_) == 0) return false;
    H5L_info_t link;
    ok(H5Lget_info(id(), step.c_str(), &link, H5P_DEFAULT), "look into", where_);
    if (link.type != H5L_TYPE_HARD)
      throw Error(fmt::format("{} is a link to another place or file, which stiefel neither writes nor follows",
                              child(where_, path)),
                  Exit::damaged);
    start = path.find_first_not_of('/', stop);
  }
  return true;
}

bool Group::is_group(const std::string& path) const {
  if (!exists(path)) return false;
  const Handle object(ok(H5Oopen(id(), path.c_str(), H5P_DEFAULT), "open an object in", where_), H5Oclose);
  return H5Iget_type(object.id()) == H5I_GROUP;
}

Group Group::group(const std::string& path) const {
  const std::string where = child(where_, path);
  if (!exists(path)) throw Error("there is no " + where, Exit::damaged);
  return {Handle(ok(H5Gopen2(id(), path.c_str(), H5P_DEFAULT), "open", where), H5Gclose), where};
}

Dataset Group::dataset(const std::string& path) const {
  const std::string where = child(where_, path);
  if (!exists(path)) throw Error("there is no " + where, Exit::damaged);
  Handle opened(ok(H5Dopen2(id(), path.c_str(), H5P_DEFAULT), "open", where), H5Dclose);
  refuse_data_elsewhere(opened, where);
  return {std::move(opened), where};
}

std::vector<std::string> Group::children() const {
  const Handle creation(ok(H5Gget_create_plist(id()), "examine", where_), H5Pclose);
  unsigned order = 0;
  ok(H5Pget_link_creation_order(creation.id(), &order), "examine", where_);
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->push_back(name);
    return 0;
  };
  hsize_t position = 0;
  ok(H5Literate(id(), order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC, &position, add,
                &names),
     "list", where_);
  return names;
}

File::File(Handle handle, const std::filesystem::path& path) : handle_(std::move(handle)), path_(path.string()) {
  root_ = std::make_unique<Group>(
      Handle(ok(H5Gopen2(handle_.id(), "/", H5P_DEFAULT), "open the root of", path_), H5Gclose), path_ + ":/");
}

File File::create(const std::filesystem::path& path, std::uint64_t user_block) {
  prepare_thread();
  const Handle creation = property_list(H5P_FILE_CREATE);
  ok(H5Pset_link_creation_order(creation.id(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "prepare",
     path.string());
  ok(H5Pset_userblock(creation.id(), user_block), "prepare", path.string());
  return {Handle(ok(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), file_access().id()), "create", path.string()),
                 H5Fclose),
          path};
}

File File::open_for_writing(const std::filesystem::path& path) {
  prepare_thread();
  return {Handle(ok(H5Fopen(path.c_str(), H5F_ACC_RDWR, file_access().id()), "open", path.string()), H5Fclose), path};
}

File File::open(const std::filesystem::path& path) {
  prepare_thread();
  return {Handle(ok(H5Fopen(path.c_str(), H5F_ACC_RDONLY, file_access().id()), "open", path.string()), H5Fclose), path};
}

void File::close() {
  ok(H5Fflush(handle_.id(), H5F_SCOPE_LOCAL), "write out", path_);
  root_->close();
  if (!handle_.reset()) fail("close", path_);
}

}  // namespace stiefel::hdf5
