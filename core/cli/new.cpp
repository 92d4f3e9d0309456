// `stiefel new ROLE NAME`: a folder with a plugin to start from, which builds, passes its check and trains as it is.
#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <cctype>
#include <filesystem>

#include <stiefel/error.hpp>
#include "base/atomic_file.hpp"
#include "host/plugin_faults.hpp"
#include "host/registry.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"
#include "cli/templates.hpp"

namespace stiefel::cli {
namespace {

void check_name(const std::string& name) {
  static const std::vector<std::string> taken_by_cmake = {
      "all", "clean", "help", "install", "preinstall", "package", "test", "edit_cache", "rebuild_cache"};
  if (!plain_name(name) || !std::isalpha(static_cast<unsigned char>(name[0])))
    throw Error(fmt::format("the name '{}' must be made of a–z, 0–9 and _, and begin with a letter", name));
  if (name.size() > 100) throw Error(fmt::format("the name has {} characters; at most 100 are allowed", name.size()));
  if (std::find(taken_by_cmake.begin(), taken_by_cmake.end(), name) != taken_by_cmake.end())
    throw Error(fmt::format("'{}' is reserved by CMake; choose another name", name));
}

const Template& find_template(const std::string& role, const std::string& language) {
  for (const Template& t : templates)
    if (role == t.role && language == t.language) return t;
  if (std::ranges::find(templates, role, &Template::role) != templates.end())
    throw Error(
        fmt::format("there is no {} to start from with {}; --torch is for maps, and a cell, which works at every "
                    "time step, is always written in C++",
                    role, language));
  throw Error(
      fmt::format("there is no role '{}'; choose from map (or parametrisation), cell, task and optimizer", role));
}

/// The class for a plugin: my_map → MyMapPlugin. The suffix avoids names of the SDK.
std::string class_name(const std::string& name) {
  std::string text;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') text += upper ? char(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return text + "Plugin";
}

constexpr const char* cmake_file = R"(cmake_minimum_required(VERSION 3.22)
project(NAME LANGUAGES CXX)
execute_process(COMMAND stiefel --prefix OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE)
find_package(stiefel REQUIRED HINTS ${prefix})
stiefel_add_plugin(NAME NAME.cpp)
)";

/// An experiment with the plugin in its role.
std::string example_of(const Template& chosen) {
  const bool script = !chosen.language.empty();
  const auto own_or = [&](const char* own_role, std::string own, const char* other) {
    if (chosen.role != own_role) return std::string(other);
    if (script) boost::replace_all(own, "plugin: NAME", "plugin: python, file: NAME.py");
    return own;
  };
  return fmt::format(R"(name: NAME-example
{}task: {}
model:
  cell: {}
  recurrent: {}
optimizer: {}
train: {{batch: 50, steps: 1000, evaluate_every: 250}}
)",
                     script ? "" : "plugins: [build]\n",
                     own_or("task", "{plugin: NAME}", "{plugin: adding, length: 10}"),
                     own_or("cell", "{plugin: NAME, hidden: 32}", "{plugin: elman, hidden: 32, activation: tanh}"),
                     own_or("parametrisation", "{plugin: NAME}", "{plugin: dense, init: orthogonal}"),
                     own_or("optimizer", "{plugin: NAME, rate: 0.001}", "{plugin: adam, rate: 0.01}"));
}

std::string filled(std::string text, const std::string& name) {
  boost::replace_all(text, "CLASS", class_name(name));
  boost::replace_all(text, "NAME", name);
  return text;
}

}  // namespace

int new_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("new", words);
  if (arguments.positional.size() != 2) throw Error("choose what to create: stiefel new map|cell|task|optimizer NAME");
  const std::string role = arguments.positional[0] == "map" ? "parametrisation" : arguments.positional[0],
                    language = arguments.has("--torch")    ? "--torch"
                               : arguments.has("--python") ? "--python"
                                                           : "";
  const Template& chosen = find_template(role, language);
  const std::string& name = arguments.positional[1];
  check_name(name);
  const Registry registry = found_plugins();
  for (const PluginFile& file : registry.files())
    for (const Entry* entry : file.entries)
      if (language.empty() && name == entry->name && name_of(entry->role) == chosen.role)
        throw Error(fmt::format("the {} '{}' already exists in {}; choose another name", chosen.role, name,
                                file.path.string()));

  const std::filesystem::path folder = name;
  std::error_code fault;
  if (std::filesystem::exists(folder))
    throw Error(fmt::format("{} already exists; choose another name or move it away", folder.string()));
  if (!std::filesystem::create_directory(folder, fault))
    throw Error(fmt::format("cannot create the folder {}: {}", folder.string(), fault.message()));
  replace_file(folder / "example.yaml", filled(example_of(chosen), name));
  if (!language.empty()) {
    replace_file(folder / (name + ".py"), filled(chosen.source, name));
    fmt::print(
        "Created {0}/{0}.py and {0}/example.yaml. Next:\n\n"
        "  stiefel check {0}/{0}.py\n"
        "  stiefel run {0}/example.yaml\n",
        name);
    return int(Exit::done);
  }
  replace_file(folder / (name + ".cpp"), filled(chosen.source, name));
  replace_file(folder / "CMakeLists.txt", filled(cmake_file, name));
  fmt::print(
      "Created {0}/{0}.cpp, {0}/CMakeLists.txt and {0}/example.yaml. Next:\n\n"
      "  cmake -S {0} -B {0}/build && cmake --build {0}/build\n"
      "  stiefel check {0}/build/{0}.so\n"
      "  stiefel run {0}/example.yaml\n",
      name);
  return int(Exit::done);
}

}  // namespace stiefel::cli
