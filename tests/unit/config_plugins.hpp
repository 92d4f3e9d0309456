// For tests of the configuration: methods with options and nothing else (no object of them can be made), a valid
// experiment, files for a while.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <stiefel/plugin.hpp>
#include <string>
#include <vector>
#include "config/load.hpp"
#include "host/registry.hpp"
#include "scratch.hpp"

namespace config_test {

using namespace stiefel;
namespace fs = std::filesystem;

struct AddingOptions {
  Index length = 0;
  std::string variant = "paper";
  void describe(Schema& s) {
    s.field("length", length, "time steps T").at_least(2).required().units("steps");
    s.field("variant", variant, "how positions are drawn").one_of({"paper", "halves"});
  }
};

struct CopyOptions {
  Index length = 10, delay = 100;
  std::vector<double> weights = {1, 0.5};
  std::vector<Index> symbols = {};
  bool one_hot = true;
  void describe(Schema& s) {
    s.field("length", length, "symbols to remember").at_least(1).at_most(1000);
    s.field("delay", delay, "steps to remember them").at_least(1);
    s.field("weights", weights, "weights of the parts of the loss").at_least(0);
    s.field("symbols", symbols, "symbols that are used").at_least(0).less_than(256);
    s.field("one_hot", one_hot, "input as one-hot vectors, not as numbers");
    s.check(delay >= length, "delay", "must be at least the length");
  }
};

struct ActivationSection {
  std::string kind = "tanh";
  double slope = 0.1;
  void describe(Schema& s) {
    s.shorthand("kind");
    s.field("kind", kind, "the function").one_of({"identity", "tanh", "relu", "leaky_relu"});
    s.field("slope", slope, "of leaky_relu below zero").at_least(0).less_than(1);
  }
};

struct ElmanOptions {
  ActivationSection activation;
  void describe(Schema& s) { s.section("activation", activation, "the nonlinearity"); }
};
struct LstmOptions {
  double forget_bias = 1;
  bool peepholes = false;
  void describe(Schema& s) {
    s.field("forget_bias", forget_bias, "initial bias of the forget gate");
    s.field("peepholes", peepholes, "gates see the cell state");
  }
};
struct HouseholderOptions {
  Index reflections = 16;
  void describe(Schema& s) { s.field("reflections", reflections, "number of reflections m").at_least(1); }
};
struct CayleyOptions {
  Index negative = 0;
  std::string init = "blocks";
  void describe(Schema& s) {
    s.field("negative", negative, "number ρ of entries −1 of D").at_least(0);
    s.field("init", init, "initial skew-symmetric matrix").one_of({"blocks", "zero"});
  }
};
struct DenseOptions {
  void describe(Schema&) {}
};
struct ClashOptions {
  std::string route = "north";
  void describe(Schema& s) { s.field("route", route, "has the name of a key of stiefel's"); }
};
/// Its file has a key and the words that this takes.
struct ScriptOptions {
  std::string file, word;
  void describe(Schema& s) {
    s.part("file", file, "a script");
    if (file.empty()) return;
    s.works_with("Tool 1.2");
    std::ifstream script(file);
    std::string key;
    std::vector<std::string> words;
    for (script >> key; script >> word;) words.push_back(word);
    if (words.empty()) return s.check(false, "file", "has no words");
    word = words.front();
    s.field(key, word, "a word of the script").one_of(words);
  }
};
struct UnsoundOptions {
  double scale = 1, shift = std::numeric_limits<double>::quiet_NaN();
  void describe(Schema& s) {
    s.field("scale", scale, "has a default that it forbids").more_than(2);
    s.field("shift", shift, "has none");
  }
};
struct AdamOptions {
  double epsilon = 1e-8;
  std::vector<double> betas = {0.9, 0.999};
  void describe(Schema& s) {
    s.field("epsilon", epsilon, "added to the root of the second moment").more_than(0);
    s.field("betas", betas, "decay rates of the moments").at_least(0).less_than(1);
  }
};
struct SgdOptions {
  double momentum = 0;
  void describe(Schema& s) { s.field("momentum", momentum, "decay of the velocity").at_least(0).less_than(1); }
};

template <class Options> constexpr Entry entry(Role role, const char* name, const char* meaning) {
  return {role,
          name,
          meaning,
          &detail::make_options<Options>,
          &detail::free_options<Options>,
          [](const void*) { return false; },
          nullptr,
          nullptr};
}

inline constexpr Entry entries[] = {
    entry<AddingOptions>(Role::task, "adding", "adding problem"),
    entry<CopyOptions>(Role::task, "copy", "copy memory problem"),
    entry<ElmanOptions>(Role::cell, "elman", "simple recurrence"),
    entry<LstmOptions>(Role::cell, "lstm", "long short-term memory"),
    entry<HouseholderOptions>(Role::parametrisation, "householder", "product of reflections"),
    entry<CayleyOptions>(Role::parametrisation, "scaled_cayley", "scaled Cayley transform"),
    entry<DenseOptions>(Role::parametrisation, "dense", "unconstrained matrix"),
    entry<AdamOptions>(Role::optimizer, "adam", "adaptive moments"),
    entry<SgdOptions>(Role::optimizer, "sgd", "gradient descent"),
};
inline constexpr Entry unsound = entry<UnsoundOptions>(Role::parametrisation, "unsound", "forbids its own default");
inline constexpr Entry script = entry<ScriptOptions>(Role::parametrisation, "script", "a map that a file defines");
inline constexpr Entry clash = entry<ClashOptions>(Role::parametrisation, "clash", "declares a key that is taken");

inline Registry registry() {
  Registry result = Registry::without_files();
  for (const Entry& method : entries) result.add_builtin(method);
  return result;
}

inline const std::string valid = R"(name: first
task: {plugin: adding, length: 50}
model:
  cell: {plugin: elman, hidden: 16, activation: leaky_relu}
  recurrent: {plugin: householder, reflections: 4}
optimizer: {plugin: adam, rate: 1e-2}
train: {batch: 10, steps: 100, clip: {kind: norm, bound: 2}}
record: {loss: 0, blocks: {"activation.slope": 7}}
)";

inline LoadedExperiment load(const std::string& text, const std::vector<std::string>& overrides = {}) {
  static Registry methods = registry();
  return load_experiment_text(text, "test.yaml", overrides, methods);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// Files that are gone with the test.
struct Folder : scratch::Folder {
  Folder() { fs::create_directories(path / "base"); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};

}  // namespace config_test
