// The handshake with plugin files: what is refused, in which order, and with which sentence.
#include <doctest/doctest.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stiefel/plugin.hpp>
#include <thread>
#include "base/suggestion.hpp"
#include "config/config_schema.hpp"
#include "host/loader/load.hpp"
#include "host/plugin_call.hpp"
#include "host/registry.hpp"
#include "scratch.hpp"

namespace fs = std::filesystem;
using namespace stiefel;

namespace {

const fs::path fixtures = STIEFEL_FIXTURES;
std::string rebuild_with(const std::string& option) {
  return "find_package(stiefel) of this installation: cmake --fresh -S SOURCE -B BUILD " + option +
         (option.empty() ? "" : " ") + "-Dstiefel_DIR='" STIEFEL_LIBRARIES "/cmake/stiefel' && cmake --build BUILD";
}
const std::string rebuild = rebuild_with("");

/// A folder of its own, also used as HOME, so that no plugin of the person who runs the tests takes part.
struct Folder : scratch::Folder {
  Folder() {
    umask(022);
    setenv("XDG_DATA_HOME", path.c_str(), 1);
    unsetenv("STIEFEL_PLUGIN_PATH");
  }
};

fs::path write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

std::string reason(const fs::path& file) {
  Registry registry;
  const PluginFile& found = registry.add(file);
  CHECK(found.entries.empty() == !found.unusable.empty());
  return found.unusable;
}

std::string message(const Registry& registry, Role role, const std::string& name) {
  try {
    registry.find(role, name);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::plugin);
    return error.what();
  }
  return "found";
}

/// The sentence and exit code of creating a fixture's map and applying it.
std::pair<std::string, Exit> use(const std::string& name) {
  Registry registry({fixtures / (name + ".so")});
  const Entry& entry = registry.find(Role::parametrisation, name);
  const fs::path& file = registry.file_of(entry).path;
  Reading reading;
  ConfigSchema schema(reading, "", nullptr, Location{});
  void* options = entry.make_options(schema);
  try {
    const Shape shape{3, 3};
    std::unique_ptr<Parametrisation<double>> map(guarded("create", entry.name, file, [&] {
      return static_cast<Parametrisation<double>*>(entry.create_double(options, &shape));
    }));
    Matrix<double> X = Matrix<double>::Ones(3, 2), Y(3, 2);
    Scratch<double> scratch{std::span<double>()};
    guarded("forward", "a_cell", "cell.so",
            [&] { guarded("apply", entry.name, file, [&] { map->apply(X, view(Y), scratch); }); });
  } catch (const Error& error) {
    entry.free_options(options);
    return {error.what(), error.code()};
  }
  entry.free_options(options);
  return {"no error", Exit::done};
}

}  // namespace

TEST_CASE("a sound plugin is loaded once and found by name") {
  Folder folder;
  Registry registry({fixtures / "sound.so"});
  const Entry& entry = registry.find(Role::optimizer, "still");
  const PluginFile& file = registry.file_of(entry);
  CHECK(file.path == fixtures / "sound.so");
  CHECK(file.version == "1.0");
  CHECK(file.unusable == "");
  CHECK(file.build_id.size() == 40);
  CHECK(&registry.add(fixtures / ".." / "plugins" / "sound.so") == &file);
  CHECK(registry.rivals_of(entry) == "");
}

TEST_CASE("files that are no plugins are refused before anything of them runs") {
  Folder folder;
  const fs::path x = folder.path / "x.so";
  CHECK(
      reason(x) ==
      fmt::format("it cannot be opened (No such file or directory); check the path and its permissions with ls -l '{}'",
                  x.string()));
  SUBCASE("folder") {
    fs::create_directory(x);
    CHECK(
        reason(x) ==
        "it is a folder where a plugin is a regular file; remove it, or name the .so that stiefel_add_plugin() builds");
    Registry registry({folder.path});
    CHECK(registry.files().front().path == x);
    CHECK(registry.files().front().unusable.starts_with("it is a folder"));
  }
  SUBCASE("FIFO") {
    REQUIRE(mkfifo(x.c_str(), 0600) == 0);
    CHECK(reason(x) ==
          "it is a FIFO where a plugin is a regular file; remove it, or name the .so that stiefel_add_plugin() builds");
  }
  SUBCASE("text") {
    write(x, "hello, world\n");
    CHECK(reason(x) ==
          "it starts with \"hell\" where a shared library starts with \"\\x7fELF\"; name the .so that "
          "stiefel_add_plugin() builds");
  }
  SUBCASE("empty") {
    write(x, "");
    CHECK(reason(x) ==
          "it starts with \"\" where a shared library starts with \"\\x7fELF\"; name the .so that stiefel_add_plugin() "
          "builds");
  }
}

TEST_CASE("headers of another kind of machine are refused") {
  Folder folder;
  const fs::path x = folder.path / "x.so";
  std::string bytes = scratch::read(fixtures / "sound.so");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto with = [&](auto change) {
    Elf64_Ehdr changed = header;
    change(changed);
    std::memcpy(bytes.data(), &changed, sizeof changed);
    return reason(write(x, bytes));
  };
  CHECK(with([](auto& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }) ==
        "it is a 32-bit library and this program is 64-bit; rebuild the plugin on this machine");
  CHECK(with([](auto& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; }) ==
        "it is a big-endian library and this machine is little-endian; rebuild the plugin on this machine");
  CHECK(
      with([](auto& h) { h.e_machine = EM_PPC64; }).starts_with("it is built for the machine PowerPC64 and this is "));
  CHECK(with([](auto& h) { h.e_type = ET_REL; }) ==
        "its ELF type is 1, but a shared library has 3; name the .so that stiefel_add_plugin() builds");
  CHECK(with([](auto& h) { h.e_phentsize = 12; }).starts_with("it is damaged: it has "));
  CHECK(with([](auto&) {}) == "");
}

TEST_CASE("a file cut anywhere never reaches dlopen") {
  Folder folder;
  const std::string bytes = scratch::read(fixtures / "sound.so");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t sections = std::size_t(header.e_shnum) * header.e_shentsize;
  for (const std::size_t size : {bytes.size() - 1, bytes.size() / 2, std::size_t(4096), sizeof(Elf64_Ehdr)}) {
    const fs::path x = write(folder.path / fmt::format("cut{}.so", size), bytes.substr(0, size));
    CHECK(reason(x) ==
          fmt::format(
              "it is cut off or damaged: its section table needs {} bytes starting at byte {}, but the file has {}; "
              "copy or build the file again",
              sections, header.e_shoff, size));
  }
  CHECK(
      reason(write(folder.path / "head.so", bytes.substr(0, 20))) ==
      "it is cut off or damaged: its header needs 64 bytes starting at byte 0, but the file has 20; copy or build the "
      "file again");
  std::string long_segment = bytes;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    char* place = long_segment.data() + header.e_phoff + i * sizeof segment;
    std::memcpy(&segment, place, sizeof segment);
    if (segment.p_type != PT_LOAD) continue;
    segment.p_filesz = ~std::uint64_t(0) - 8;  // the sum with its offset wraps around
    std::memcpy(place, &segment, sizeof segment);
    CHECK(
        reason(write(folder.path / "long.so", long_segment))
            .starts_with(fmt::format("it is cut off or damaged: its segment {} needs 18446744073709551607 bytes", i)));
    break;
  }
}

TEST_CASE("the tag is compared before anything is loaded") {
  Folder folder;
  CHECK(reason(fixtures / "untagged.so") ==
        "it has no stiefel-abi tag; end its source with STIEFEL_PLUGIN(...) and build it "
        "with " +
            rebuild);
  CHECK(reason(fixtures / "wrong_sdk.so") ==
        "it was built with SDK headers 0000000000000000 and this stiefel with SDK headers " STIEFEL_SDK_ID
        "; rebuild it with " +
            rebuild);
  CHECK(reason(fixtures / "later_standard.so") == "");
  CHECK(reason(fixtures / "wrong_standard.so") ==
        "it was built with C++ standard 201703L and this stiefel with C++ standard " STIEFEL_STANDARD
        "; rebuild it with " +
            rebuild_with("-DCMAKE_CXX_STANDARD=20"));
#if defined(__x86_64__)
  const std::string known = STIEFEL_PROCESSOR "+sse3";
#else
  const std::string known = STIEFEL_PROCESSOR;
#endif
  CHECK(reason(fixtures / "wrong_isa.so") ==
        "it was built for " + known +
            "+avx4096 and this CPU has no avx4096; rebuild it on this machine or without -march, with " + rebuild);
  std::string bytes = scratch::read(fixtures / "sound.so");
  const std::string tag = STIEFEL_ABI_TAG.data();
  std::string other = tag;
  other.replace(other.find("sdk="), 4, "SDK=");
  CHECK(reason(write(folder.path / "two.so", bytes + other)) ==
        "it carries 2 stiefel-abi tags and a plugin carries 1; write STIEFEL_PLUGIN(...) once per library and rebuild "
        "it with " +
            rebuild);
  const std::size_t place = bytes.find("containers=release");
  REQUIRE(place != bytes.npos);
  CHECK(reason(write(folder.path / "fields.so", bytes.replace(place, 18, "novelty=very-large"))) ==
        "it was built with containers (not stated), novelty very-large and this stiefel with containers release, "
        "novelty (not stated); "
        "rebuild it with " +
            rebuild_with("-DCMAKE_CXX_FLAGS="));
}

TEST_CASE("the layout of every type of the interface must agree, and the first number that differs is named") {
  Folder folder;
  const std::string bytes = scratch::read(fixtures / "sound.so");
  const auto with = [&](const std::string& ours, const std::string& theirs) {
    std::string changed = bytes;
    REQUIRE(changed.find(ours) != bytes.npos);
    return reason(write(folder.path / "layout.so", changed.replace(changed.find(ours), ours.size(), theirs)));
  };
  const auto sentence = [](const std::string& theirs, const std::string& ours) {
    return "it was built with " + theirs + " and this stiefel with " + ours + "; rebuild it with " + rebuild;
  };
  CHECK(with("std::string=32/8", "std::string=24/8") ==
        sentence("a std::string of 24 bytes", "a std::string of 32 bytes"));
  CHECK(with("Claim=24/8", "Claim=24/4") == sentence("a Claim aligned to 4 bytes", "a Claim aligned to 8 bytes"));
  CHECK(with("/name@0/size@32", "/name@0/size@40") ==
        sentence("BlockSpec::size at byte 40", "BlockSpec::size at byte 32"));
  CHECK(with("Archive=8/8", "Archive=8/8/8") == sentence("Archive 8/8/8", "Archive 8/8"));
}

TEST_CASE("what the system's loader refuses is reported with its reason") {
  Folder folder;
  CHECK(reason(fixtures / "undefined_symbol.so") ==
        fmt::format("the system cannot load it ({}: undefined symbol: stiefel_fixture_nowhere); link every library "
                    "that it uses and "
                    "rebuild it with {}",
                    (fixtures / "undefined_symbol.so").string(), rebuild));
  CHECK(reason(fixtures / "no_dependency.so") ==
        "the system cannot load it (libstiefel_fixture_departed.so: cannot open shared object file: No such file or "
        "directory); "
        "install the library that it names, or add that library's folder to LD_LIBRARY_PATH");
}

TEST_CASE("the table and its entries are checked") {
  Folder folder;
  CHECK(reason(fixtures / "no_symbol.so") ==
        "it has no symbol stiefel_plugin, and STIEFEL_PLUGIN(...) exports one; rebuild it without hiding that symbol, "
        "with " +
            rebuild);
  CHECK(reason(fixtures / "wrong_table.so") ==
        fmt::format("its plugin table has {} bytes, but this stiefel expects {}; rebuild it with {}",
                    sizeof(PluginTable) + 8, sizeof(PluginTable), rebuild));
  CHECK(reason(fixtures / "wrong_entry.so") ==
        fmt::format("an entry of its plugin table has {} bytes, but this stiefel expects {}; rebuild it with {}",
                    sizeof(Entry) + 8, sizeof(Entry), rebuild));
  CHECK(reason(fixtures / "no_entries.so") == "its table is empty; list at least one method in STIEFEL_PLUGIN(...)");
  CHECK(reason(fixtures / "twice.so") ==
        "it lists the optimizer 'still' twice, but names must be unique; rename one in STIEFEL_PLUGIN(...)");
  CHECK(reason(fixtures / "bad_name.so") ==
        "entry 1 has the name 'Still-1' and names are [a-z][a-z0-9_]*; rename it in STIEFEL_PLUGIN(...)");
  CHECK(reason(fixtures / "bad_role.so") ==
        "entry 1 has the role number 7 and the largest is 3; list entries by parametrisation<>, cell<>, task<> or "
        "optimizer<>");
  CHECK(reason(fixtures / "null_function.so") ==
        "the optimizer 'still' has a null function where all five are needed; list it by optimizer<Class>(...) in "
        "STIEFEL_PLUGIN(...)");
}

TEST_CASE("a name taken twice: the first file is used, and both are named") {
  Folder folder;
  fs::create_directory(folder.path / "plugins");
  const fs::path first = folder.path / "plugins/a.so", second = folder.path / "plugins/b.so";
  fs::copy_file(fixtures / "sound.so", second);
  fs::copy_file(fixtures / "sound.so", first);
  std::vector<std::string> warnings;
  Registry registry({folder.path / "plugins"}, [&](const std::string& sentence) { warnings.push_back(sentence); });
  const Entry& entry = registry.find(Role::optimizer, "still");
  CHECK(&registry.find(Role::optimizer, "still") == &entry);
  CHECK(warnings == std::vector<std::string>{registry.rivals_of(entry)});
  CHECK(registry.file_of(entry).path == first);
  CHECK(registry.files()[1].path == second);
  CHECK(registry.files()[1].unusable == "");
  CHECK(registry.rivals_of(entry) == fmt::format("the optimizer 'still' is taken from {}, which is named, not from {}",
                                                 first.string(), second.string()));
  const std::vector<std::string> names = registry.names(Role::optimizer);
  CHECK(std::count(names.begin(), names.end(), "still") == 1);
}

TEST_CASE("a named file wins over those that are found, wherever and whenever") {
  Folder folder;
  fs::create_directories(folder.path / "stiefel/plugins");
  const fs::path found = folder.path / "stiefel/plugins/found.so", in_path = folder.path / "in_path.so",
                 named = folder.path / "named.so";
  for (const fs::path& copy : {found, in_path, named}) fs::copy_file(fixtures / "sound.so", copy);
  setenv("STIEFEL_PLUGIN_PATH", in_path.c_str(), 1);
  std::vector<std::string> warnings;
  Registry registry({}, [&](const std::string& sentence) { warnings.push_back(sentence); });
  unsetenv("STIEFEL_PLUGIN_PATH");
  const auto owner = [&] { return registry.file_of(registry.find(Role::optimizer, "still")).path; };
  CHECK(owner() == in_path);
  SUBCASE("a new file") {
    registry.add_named(named);
    CHECK(owner() == named);
    CHECK(warnings.back() == fmt::format("the optimizer 'still' is taken from {}, which is named, not from {}, {}",
                                         named.string(), in_path.string(), found.string()));
  }
  SUBCASE("one that was found") {
    registry.add_named(found);
    CHECK(owner() == found);
  }
}

TEST_CASE("a named folder without plugins is remarked on") {
  Folder folder;
  fs::create_directory(folder.path / "empty");
  std::vector<std::string> warnings;
  Registry registry({}, [&](const std::string& sentence) { warnings.push_back(sentence); });
  registry.add_named(folder.path / "empty");
  CHECK(warnings == std::vector<std::string>{fmt::format(
                        "there is no plugin in {}: it has no file that ends in .so; build one there, or name another "
                        "folder",
                        (folder.path / "empty").string())});
}

TEST_CASE("an unavailable name is refused with the reason") {
  Folder folder;
  Registry registry({fixtures / "sound.so", fixtures / "wrong_standard.so"});
  CHECK(message(registry, Role::optimizer, "stil") == "there is no optimizer 'stil'; did you mean 'still'?");
  CHECK(message(registry, Role::optimizer, "tsill") == "there is no optimizer 'tsill'; did you mean 'still'?");
  CHECK(message(registry, Role::cell, "still") ==
        "'still' is an optimizer, but a cell is needed here; `stiefel list` shows the names of each");
  const std::string known = fmt::format("{}", fmt::join(registry.names(Role::optimizer), ", "));
  CHECK(
      message(registry, Role::optimizer, "conjugate_gradient") ==
      fmt::format("there is no optimizer 'conjugate_gradient'; choose from {}, or add a folder to STIEFEL_PLUGIN_PATH",
                  known));
  CHECK(message(Registry(), Role::optimizer, "conjugate_gradient").ends_with(", or name its file under `plugins:`"));
  const fs::path unusable = fixtures / "wrong_standard.so";
  const std::string why = fmt::format("{} is unusable: {}", unusable.string(), reason(unusable));
  CHECK(message(registry, Role::cell, "wrong_standard") == "cannot load cell 'wrong_standard': " + why);
  CHECK(message(registry, Role::cell, "foreign") == "cannot load cell 'foreign': " + why);
}

TEST_CASE("the search path: named places, the environment, the user's folder") {
  Folder folder;
  fs::create_directories(folder.path / "stiefel/plugins");
  fs::create_directory(folder.path / "other");
  fs::copy_file(fixtures / "sound.so", folder.path / "stiefel/plugins/sound.so");
  fs::copy_file(fixtures / "untagged.so", folder.path / "other/untagged.so");
  write(folder.path / "other/readme.txt", "not a plugin, and not looked at");
  setenv("STIEFEL_PLUGIN_PATH", (folder.path / "other:").string().append(folder.path / "absent").c_str(), 1);
  Registry registry;
  unsetenv("STIEFEL_PLUGIN_PATH");
  REQUIRE(registry.files().size() >= 3);
  CHECK(registry.files()[0].path == folder.path / "other/untagged.so");
  CHECK(registry.files()[1].path == folder.path / "absent");
  CHECK(registry.files()[1].unusable.starts_with("it cannot be opened (No such file or directory)"));
  CHECK(registry.files()[2].path == folder.path / "stiefel/plugins/sound.so");
  CHECK(registry.find(Role::optimizer, "still").role == Role::optimizer);
}

TEST_CASE("what anybody may write to is warned of, once") {
  Folder folder;
  const fs::path place = folder.path / "stiefel/plugins", file = place / "sound.so", link = folder.path / "link.so";
  fs::create_directories(place);
  fs::copy_file(fixtures / "sound.so", file);
  fs::create_symlink(file, link);
  std::vector<std::string> said;
  const auto warn = [&](const std::string& sentence) { said.push_back(sentence); };
  const auto of_folder = fmt::format(
      "anybody can write to the plugin folder {0}, and its plugins run with your rights; fix this with chmod o-w '{0}'",
      place.string());
  const auto of_file =
      fmt::format("anybody can write to the plugin {0}, and it runs with your rights; fix this with chmod o-w '{0}'",
                  file.string());
  const auto others = [](const fs::path& path) {
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  };
  Registry({file}, warn);
  CHECK(said.empty());
  others(place);
  Registry({file}, warn);  // named, and found in its folder
  CHECK(said == std::vector<std::string>{of_folder});
  fs::permissions(place, fs::perms::sticky_bit, fs::perm_options::add);
  CHECK(warnings_about(link) == std::vector<std::string>{of_folder});
  others(file);
  said.clear();
  Registry registry({}, warn);
  registry.add(file);
  CHECK(said == std::vector<std::string>{of_folder, of_file});
}

TEST_CASE("a parent folder that anybody may write to is warned of, unless it is sticky") {
  Folder folder;
  const fs::path place = folder.path / "above/plugins", file = place / "sound.so";
  fs::create_directories(place);
  fs::copy_file(fixtures / "sound.so", file);
  CHECK(warnings_about(file).empty());
  fs::permissions(folder.path / "above", fs::perms::others_write, fs::perm_options::add);
  const auto sentence = fmt::format(
      "anybody can write to the parent folder of plugins {0}, and these run with your rights; fix this with "
      "chmod o-w '{0}'",
      (folder.path / "above").string());
  CHECK(warnings_about(file) == std::vector<std::string>{sentence});
  CHECK(warnings_about(place) == std::vector<std::string>{sentence});
  fs::permissions(folder.path / "above", fs::perms::sticky_bit, fs::perm_options::add);
  CHECK(warnings_about(file).empty());
}

TEST_CASE("what another user owns is warned of, once if it is the whole folder") {
  if (geteuid() != 0) {
    MESSAGE("not tested: only root can give files away");
    return;
  }
  Folder folder;
  const fs::path file = folder.path / "sound.so";
  fs::copy_file(fixtures / "sound.so", file);
  constexpr uid_t stranger = 54321;
  const auto owned = [](const fs::path& path, const std::string& what, const std::string& runs) {
    return fmt::format("the user 54321 owns the {} {}, and {} with your rights; use a copy that you or root own", what,
                       path.string(), runs);
  };
  REQUIRE(chown(file.c_str(), stranger, stranger) == 0);
  CHECK(warnings_about(file) == std::vector<std::string>{owned(file, "plugin", "it runs")});
  REQUIRE(chown(folder.path.c_str(), stranger, stranger) == 0);
  const std::vector<std::string> of_folder{owned(folder.path, "plugin folder", "its plugins run")};
  CHECK(warnings_about(file) == of_folder);
  CHECK(warnings_about(folder.path) == of_folder);
  std::vector<std::string> said;
  Registry({folder.path}, [&](const std::string& sentence) { said.push_back(sentence); });
  CHECK(said == of_folder);
}

TEST_CASE("what a plugin throws says what was asked of whom, once") {
  Folder folder;
  const auto place = [](const char* verb, const char* name) {
    return fmt::format("in {}() of {}, {}/{}.so", verb, name, fixtures.string(), name);
  };
  CHECK(use("hostile_nan").second == Exit::done);
  CHECK(use("hostile_throw_create") ==
        std::pair("no map today (" + place("create", "hostile_throw_create") + ")", Exit::plugin));
  CHECK(use("hostile_throw_int") ==
        std::pair("an exception of type int was thrown " + place("apply", "hostile_throw_int") +
                      "; let the plugin throw stiefel::Error",
                  Exit::plugin));
  const auto thrown = [](auto call, const fs::path& file = "m.so") {
    try {
      guarded("refresh", "map", file, call);
    } catch (const Error& error) {
      return std::pair<std::string, Exit>(error.what(), error.code());
    }
    return std::pair<std::string, Exit>();
  };
  CHECK(thrown([] { throw Error("the slope is 2 and may be 1."); }) ==
        std::pair<std::string, Exit>("the slope is 2 and may be 1. (in refresh() of map, m.so)", Exit::plugin));
  CHECK(thrown([] { throw Error("the slope is 2 and may be 1"); }, library_folder() / "stiefel/plugins/map.so") ==
        std::pair<std::string, Exit>("the slope is 2 and may be 1", Exit::usage));
  for (const char* sentence : {"digits: label 3 is 12. Replace the file.", "rows.csv:2:1: 3 fields"})
    CHECK(thrown([&] { throw Error(sentence, Exit::data); }) == std::pair<std::string, Exit>(sentence, Exit::data));
  CHECK(thrown([] { throw std::bad_alloc(); }) ==
        std::pair<std::string, Exit>("out of memory in refresh() of map, m.so; choose smaller sizes or free memory",
                                     Exit::exhausted));
  CHECK(guarded("refresh", "map", "m.so", [] { return 7; }) == 7);
}

TEST_CASE("a plugin's mistake in a call of the SDK names the function to correct, and is no internal error") {
  const auto sentence = [](auto call) {
    try {
      guarded("verb", "method", "m.so", call);
    } catch (const Error& error) {
      CHECK(error.code() == Exit::plugin);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(
      sentence([] { Scratch<double>(std::span<double>()).take(2, 3); }) ==
      "2 × 3 numbers of working memory are needed, but only 0 are left; correct scratch(columns), which says how many "
      "one call takes (in verb() of method, m.so)");
  CHECK(sentence([] {
          Chunk<double>().at(-1);
        }).starts_with("chunk.at(-1) and chunk.before(-1) do not exist: the chunk has 0 steps, "));
  Chunk<double> two_steps;
  two_steps.steps = 2;
  CHECK(sentence([&] {
          two_steps.at(2);
        }).starts_with("chunk.at(2) and chunk.before(2) do not exist: the chunk has 2 steps,"));
  CHECK(sentence([] { Rng(1).uniform(1, -1); }).starts_with("there is no number from 1 to below -1"));
  const Matrix<float> output = Matrix<float>::Zero(3, 1);
  const float weight = 1;
  const auto loss_of = [&](std::vector<std::int32_t> labels) {
    return sentence([&] {
      const Targets<float> targets{{}, labels, {&weight, 1}};
      softmax_cross_entropy(CMat<float>(output), targets, {});
    });
  };
  CHECK(loss_of({7}) == "the label 7 is not from 0 to 2; correct fill() (in verb() of method, m.so)");
  CHECK(loss_of({}).starts_with("the loss is one of labels, but the targets are numbers; set `labels` in shape() (in"));
  CHECK(sentence([&] {
          Matrix<double> A(3, 3);
          skew<double>(std::vector<double>(4), A);
        }).starts_with("4 numbers are not the strict lower triangle of 3 × 3; correct blocks(), or the split of the"));
  CHECK(sentence([] { STIEFEL_ASSERT(1 == 2); }).starts_with("1 == 2 does not hold at "));
  CHECK(sentence([] { STIEFEL_ASSERT(1 == 2); }).find("report") == std::string::npos);
}

TEST_CASE("the innermost call of a thread is known while it lasts") {
  CHECK(PluginCall::innermost() == nullptr);
  guarded("forward", "cell", "c.so", [] {
    CHECK_THROWS_AS(guarded("apply", "map", "m.so",
                            [] {
                              CHECK(PluginCall::innermost()->verb == "apply");
                              CHECK(PluginCall::innermost()->outer->plugin == "cell");
                              std::thread([] { CHECK(PluginCall::innermost() == nullptr); }).join();
                              throw Error("no");
                            }),
                    Error);
    CHECK(PluginCall::innermost()->file == "c.so");
  });
  CHECK(PluginCall::innermost() == nullptr);
}

TEST_CASE("a file that was named and is unusable is warned of") {
  std::vector<std::string> warnings;
  Registry registry({}, [&](const std::string& sentence) { warnings.push_back(sentence); });
  registry.add_named(fixtures / "sound.so");
  CHECK(warnings.empty());
  registry.add_named(fixtures / "no_entries.so");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("no_entries.so is not used: its table is empty") != std::string::npos);
}

TEST_CASE("suggestions are at most two edits away") {
  CHECK(edit_distance("householder", "housholder") == 1);
  CHECK(edit_distance("adma", "adam") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(close_names("rmsprpo", {"adam", "rmsprop", "sgd"}) == std::vector<std::string>{"rmsprop"});
  CHECK(close_names("gsd", {"adam", "sgd"}) == std::vector<std::string>{"sgd"});
  CHECK(close_names("abc", {"abx", "xyc"}) == std::vector<std::string>{"abx"});
  CHECK(suggestion("lstn", {"lstm", "lste"}) == "; did you mean 'lstm' or 'lste'?");
  CHECK(close_names("batch_size", {"atch", "batch", "bat", "size_of"}) == std::vector<std::string>{"batch"});
  CHECK(close_names("learning_rate", {"blocks", "rate"}) == std::vector<std::string>{"rate"});
  CHECK(close_names("lr", {"blocks", "rate"}) == std::vector<std::string>{"rate"});
  CHECK(close_names("separate", {"rate", ""}).empty());
  CHECK(close_names("rate", {"name", "optimizer.rate", "model.gate"}) == std::vector<std::string>{"optimizer.rate"});
  CHECK(close_names("optimizer.rat", {"optimizer.rate"}) == std::vector<std::string>{"optimizer.rate"});
}
