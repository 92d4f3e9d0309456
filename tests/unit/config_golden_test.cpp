// Golden error messages. Each case in tests/golden_errors/AREA.txt is
//
//     ===== NAME
//     the experiment file
//     -----
//     the expected message
//
// Lines `# with: key=value` at the top of an experiment are command-line overrides, and <0xHH> stands for a byte that a
// text file cannot show. STIEFEL_WRITE_GOLDEN=1 rewrites the expected messages; review the difference before you commit
// it.
#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include "config/load.hpp"

#include "choose_plugin.hpp"
#include "config_plugins.hpp"

namespace fs = std::filesystem;
using namespace stiefel;

namespace {

const std::string heading = "===== ", separator = "-----";

struct Case {
  std::string name, input, expected;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<Case> read_cases(const fs::path& area) {
  std::ostringstream text;
  text << std::ifstream(area, std::ios::binary).rdbuf();
  std::vector<Case> cases;
  bool message = false;
  for (const std::string& line : lines_of(text.str())) {
    if (line.starts_with(heading)) {
      cases.push_back({line.substr(heading.size()), {}, {}});
      message = false;
    } else if (line == separator) {
      message = true;
    } else if (!message) {
      cases.at(cases.size() - 1).input += line + "\n";
    } else if (!line.empty()) {
      cases.back().expected += line + "\n";
    }
  }
  return cases;
}

void write_cases(const fs::path& area, const std::vector<Case>& cases) {
  std::ofstream file(area, std::ios::binary);
  for (const Case& c : cases)
    file << (&c == cases.data() ? "" : "\n") << heading << c.name << "\n" << c.input << separator << "\n" << c.expected;
}

std::string with_bytes(std::string text) {
  for (std::size_t at; (at = text.find("<0x")) != text.npos;)
    text.replace(at, 6, 1, static_cast<char>(std::stoi(text.substr(at + 3, 2), nullptr, 16)));
  return text;
}

std::vector<std::string> arguments_in(const std::string& text) {
  const std::string mark = "# with: ";
  std::vector<std::string> arguments;
  for (const std::string& line : lines_of(text)) {
    if (!line.starts_with(mark)) break;
    arguments.push_back(line.substr(mark.size()));
  }
  return arguments;
}

/// All cases as files in a temporary folder, next to the files that they extend.
struct Cases {
  config_test::Folder folder;
  std::vector<std::pair<fs::path, std::vector<Case>>> areas;

  Cases() {
    fs::copy(fs::path(STIEFEL_GOLDEN_ERRORS) / "base", folder.path / "base");
    fs::current_path(folder.path);
    for (const auto& entry : fs::directory_iterator(STIEFEL_GOLDEN_ERRORS)) {
      if (entry.path().extension() != ".txt") continue;
      areas.emplace_back(entry.path(), read_cases(entry.path()));
      for (const Case& c : areas.back().second) folder.write(c.name + ".yaml", with_bytes(c.input));
    }
  }
};

/// Messages name files relative to the folder of the cases, wherever that is.
std::string without_folder(std::string text) {
  const std::string folder = fs::current_path().string() + "/";
  for (std::size_t at; (at = text.find(folder)) != text.npos;) text.erase(at, folder.size());
  return text;
}

std::string refusal(const fs::path& file, const std::vector<std::string>& overrides, Registry& registry) {
  try {
    load_experiment(file, overrides, registry);
  } catch (const Error& error) {
    return without_folder(error.what()) + "\n";
  }
  return "accepted\n";
}

std::string difference(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> before = lines_of(expected), after = lines_of(actual);
  std::string text;
  for (const std::string& line : before) text += (std::ranges::count(after, line) != 0 ? "\n  " : "\n- ") + line;
  for (const std::string& line : after) text += std::ranges::count(before, line) != 0 ? "" : "\n+ " + line;
  return text;
}

}  // namespace

TEST_CASE("every invalid experiment is refused with the expected message") {
  Cases all;
  Registry registry = config_test::registry();
  registry.add_builtin(config_test::clash);
  registry.add_builtin(config_test::unsound);
  const bool write = std::getenv("STIEFEL_WRITE_GOLDEN") != nullptr;
  std::size_t count = 0;
  for (auto& [area, cases] : all.areas) {
    for (Case& c : cases) {
      const std::string message = refusal(c.name + ".yaml", arguments_in(c.input), registry);
      CHECK_MESSAGE((write || message == c.expected), area.filename().string(), ": ", c.name,
                    difference(c.expected, message));
      c.expected = message;
    }
    count += cases.size();
    if (write) write_cases(area, cases);
  }
  CHECK(count >= 165);
}

TEST_CASE("malformed YAML is refused with the same message through extends, and on the command line") {
  const Cases all;
  Registry registry = config_test::registry();
  int count = 0;
  for (const auto& [area, cases] : all.areas)
    for (const Case& c : cases) {
      if (!c.name.starts_with("yaml_") && !c.name.starts_with("key_duplicate")) continue;
      CAPTURE(c.name);
      const std::string text = with_bytes(c.input);
      const std::string extending =
          all.folder.write("extending.yaml", "extends: " + fs::absolute(c.name + ".yaml").string() + "\n");
      CHECK(refusal(extending, {}, registry) == c.expected);
      CHECK_THROWS_AS(load_experiment("base/valid.yaml", {"task=" + text}, registry), Error);
      CHECK_THROWS_AS(choose_plugin(config_test::entries[0], text), Error);
      ++count;
    }
  CHECK(count >= 35);
}

TEST_CASE("the experiments that the cases extend are valid") {
  const Cases all;
  Registry registry = config_test::registry();
  CHECK_NOTHROW(load_experiment("base/valid.yaml", {}, registry));
  CHECK_NOTHROW(load_experiment("base/list_of_optimizers.yaml", {}, registry));
}
