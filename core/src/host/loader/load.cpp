// The handshake with one plugin file.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <string_view>
#include <vector>

#include <stiefel/error.hpp>

#include "host/loader/elf_file.hpp"
#include "host/loader/load.hpp"
#include "host/loader/tag.hpp"
#include "host/plugin_call.hpp"
#include "host/process_state.hpp"

namespace stiefel {
namespace {

std::string rebuild_command(const std::string& options = {}) {
  return fmt::format(
      "find_package(stiefel) of this installation: cmake --fresh -S SOURCE -B BUILD {}-Dstiefel_DIR='{}' && cmake "
      "--build "
      "BUILD",
      options, (library_folder() / "cmake/stiefel").string());
}

std::string read_table(const boost::dll::shared_library& library, const PluginTable*& table) {
  if (!library.has("stiefel_plugin"))
    return fmt::format(
        "it has no symbol stiefel_plugin, and STIEFEL_PLUGIN(...) exports one; rebuild it without hiding that symbol, "
        "with {}",
        rebuild_command());
  table = &library.get<const PluginTable>("stiefel_plugin");
  if (table->table_size != sizeof(PluginTable))
    return fmt::format("its plugin table has {} bytes, but this stiefel expects {}; rebuild it with {}",
                       table->table_size, sizeof(PluginTable), rebuild_command());
  if (table->entry_size != sizeof(Entry))
    return fmt::format("an entry of its plugin table has {} bytes, but this stiefel expects {}; rebuild it with {}",
                       table->entry_size, sizeof(Entry), rebuild_command());
  return {};
}

bool well_formed(const char* name) {
  const std::string_view text = name ? name : "";
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || c == '_' || (c >= '0' && c <= '9'); });
}

std::string check_entry(const Entry& entry, std::uint32_t number) {
  if (entry.role > Role::optimizer)
    return fmt::format(
        "entry {} has the role number {} and the largest is {}; list entries by parametrisation<>, cell<>, task<> or "
        "optimizer<>",
        number, std::uint32_t(entry.role), std::uint32_t(Role::optimizer));
  if (!well_formed(entry.name))
    return fmt::format("entry {} has the name '{}' and names are [a-z][a-z0-9_]*; rename it in STIEFEL_PLUGIN(...)",
                       number, entry.name ? entry.name : "");
  if (!entry.meaning || !*entry.meaning)
    return fmt::format(
        "the {} '{}' has an empty meaning where `stiefel list` needs one; give it one in STIEFEL_PLUGIN(...)",
        name_of(entry.role), entry.name);
  if (!entry.make_options || !entry.free_options || !entry.complex_pairs || !entry.create_float || !entry.create_double)
    return fmt::format(
        "the {0} '{1}' has a null function where all five are needed; list it by {0}<Class>(...) in "
        "STIEFEL_PLUGIN(...)",
        name_of(entry.role), entry.name);
  return {};
}

std::string check_entries(const PluginTable& table) {
  if (!table.version || !*table.version)
    return "its version is empty where a text such as \"1.0\" is needed; give one in STIEFEL_PLUGIN(...)";
  if (table.count == 0 || !table.entries) return "its table is empty; list at least one method in STIEFEL_PLUGIN(...)";
  for (std::uint32_t i = 0; i < table.count; ++i) {
    std::string refusal = check_entry(table.entries[i], i + 1);
    if (!refusal.empty()) return refusal;
  }
  return {};
}

std::string refusal_of_loading(const std::string& reason) {
  const bool absent = reason.find("cannot open shared object file") != reason.npos;
  return fmt::format("the system cannot load it ({}); {}", reason,
                     absent ? "install the library that it names, or add that library's folder to LD_LIBRARY_PATH"
                            : "link every library that it uses and rebuild it with " + rebuild_command());
}

}  // namespace

std::filesystem::path library_folder() {
  static const std::filesystem::path folder = [] {
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<const void*>(&load_plugin), &info) != 0 && info.dli_fname;
    return known ? std::filesystem::weakly_canonical(info.dli_fname).parent_path() : std::filesystem::path();
  }();
  return folder;
}

PluginFile load_plugin(const std::filesystem::path& path) {
  PluginFile file;
  file.path = path;
  {
    const ElfFile elf = read_elf(path);
    file.build_id = elf.build_id;
    file.unusable = elf.refusal.empty() ? check_tag(elf.bytes, rebuild_command) : elf.refusal;
  }
  if (!file.unusable.empty()) return file;
  // The path must be absolute, because dlopen searches the system's folders for a name without a slash.
  boost::dll::fs::error_code failure;
  boost::dll::shared_library library;
  const std::string name = path.stem().string();
  std::string reason;
  guarded("dlopen", name, path, [&] {
    const Confined here(name, "while it was loaded", path);
    library.load(std::filesystem::absolute(path), failure, boost::dll::load_mode::rtld_now);
    const char* said = library ? nullptr : dlerror();
    reason = said ? said : failure.message();
  });
  if (!library) {
    if (reason.find(std::strerror(ENOMEM)) != reason.npos)
      throw Error(fmt::format("memory ran out while {} was loaded; free memory", path.string()), Exit::exhausted);
    file.unusable = refusal_of_loading(reason);
    return file;
  }
  // Libraries are never unloaded, because objects of a plugin may live until the process ends.
  static std::vector<boost::dll::shared_library>& loaded = *new std::vector<boost::dll::shared_library>;
  loaded.push_back(library);
  const PluginTable* table = nullptr;
  file.unusable = read_table(library, table);
  if (file.unusable.empty()) file.unusable = check_entries(*table);
  if (!file.unusable.empty()) return file;
  file.version = table->version;
  for (std::uint32_t i = 0; i < table->count; ++i) file.entries.push_back(&table->entries[i]);
  return file;
}

}  // namespace stiefel
