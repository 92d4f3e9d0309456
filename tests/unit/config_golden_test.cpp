// Golden error texts: each tests/golden_errors/NAME.yaml is refused with exactly the text of NAME.expected.
// Lines `# with: key=value` at its beginning are the command line. STIEFEL_WRITE_GOLDEN=1 writes the expected texts anew, to be read before
// use.
#include <doctest/doctest.h>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include "config/load.hpp"

#include "config_plugins.hpp"

namespace fs = std::filesystem;
using namespace stiefel;

namespace {

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> arguments_in(const std::string& text) {
  const std::string mark = "# with: ";
  std::vector<std::string> arguments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with(mark);) arguments.push_back(line.substr(mark.size()));
  return arguments;
}

/// Messages name files relative to the folder of the cases, wherever that lies.
std::string without_folder(std::string text) {
  const std::string folder = fs::current_path().string() + "/";
  for (std::size_t at; (at = text.find(folder)) != text.npos;) text.erase(at, folder.size());
  return text;
}

std::string refusal(const fs::path& file, Registry& registry) {
  try {
    load_experiment(file, arguments_in(contents(file)), registry);
  } catch (const Error& error) {
    return without_folder(error.what()) + "\n";
  }
  return "accepted\n";
}

}  // namespace

TEST_CASE("every spoiled experiment is refused with the expected words") {
  fs::current_path(STIEFEL_GOLDEN_ERRORS);
  Registry registry = config_test::registry();
  registry.add_builtin(config_test::clash);
  const bool write = std::getenv("STIEFEL_WRITE_GOLDEN") != nullptr;
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(".")) {
    if (entry.path().extension() != ".yaml") continue;
    const fs::path file = entry.path().filename();
    const std::string text = refusal(file, registry);
    const fs::path expected = fs::path(file).replace_extension(".expected");
    if (write) std::ofstream(expected, std::ios::binary) << text;
    CAPTURE(file.string());
    CHECK(text == contents(expected));
    ++cases;
  }
  CHECK(cases >= 60);
}

TEST_CASE("what is no sound YAML is refused in the same words through extends, and on the command line") {
  fs::current_path(STIEFEL_GOLDEN_ERRORS);
  Registry registry = config_test::registry();
  const config_test::Folder folder;
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(".")) {
    const fs::path file = entry.path().filename();
    const std::string name = file.string(), text = contents(file);
    if (file.extension() != ".yaml" || !(name.starts_with("yaml_") || name.starts_with("key_duplicate"))) continue;
    CAPTURE(name);
    const std::string extending = folder.write("extending.yaml", "extends: " + fs::absolute(file).string() + "\n");
    CHECK(refusal(extending, registry) == contents(fs::path(file).replace_extension(".expected")));
    CHECK_THROWS_AS(load_experiment("base/valid.yaml", {"task=" + text}, registry), Error);
    CHECK_THROWS_AS(choose_plugin(config_test::entries[0], text), Error);
    ++cases;
  }
  CHECK(cases >= 35);
}

TEST_CASE("the experiment that the cases extend is valid") {
  fs::current_path(STIEFEL_GOLDEN_ERRORS);
  Registry registry = config_test::registry();
  CHECK_NOTHROW(load_experiment("base/valid.yaml", {}, registry));
  CHECK_NOTHROW(load_experiment("base/list_of_optimizers.yaml", {}, registry));
}
