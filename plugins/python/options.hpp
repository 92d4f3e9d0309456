// The options of a Python class, as declared by its annotations.
#pragma once

#include <charconv>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "python/worker.hpp"

namespace stiefel::python {

template <Role role> struct Options {
  std::string file, interpreter;
  Index threads = 1;
  std::shared_ptr<Worker> worker;  // of the file; null if there is no file, or none that can be used

  void describe(Schema& s) {
    s.part("file", file, "Python file with a class derived from stiefel.Map, stiefel.Task or stiefel.Optimizer");
    s.field("python", interpreter, "interpreter; empty: the environment variable STIEFEL_PYTHON, else python3")
        .not_in_id_at_default();
    s.field("threads", threads, "threads of NumPy, torch and JAX").at_least(1).at_most(1024).not_in_id_at_default();
    if (file.empty()) return;
    try {
      worker = Worker::of({role, file, interpreter, threads});
    } catch (const Error& error) {
      s.check(false, "file", error.what());
      return;
    }
    s.works_with(worker->versions());
    for (const Option& option : worker->options()) declare(s, option);
  }

  /// Adds each option to a request: key, number of values, values.
  void add_to(Call& call) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      call.add(worker->options()[i].key);
      std::visit([&](const auto& value) { add_value(call, value); }, values_[i]);
    }
  }

 private:
  using Value =
      std::variant<bool, Index, double, std::string, std::vector<Index>, std::vector<double>, std::vector<std::string>>;

  static void read(const std::string& text, bool& value) { value = text == "true"; }
  static void read(const std::string& text, Index& value) { value = std::stoll(text); }
  static void read(const std::string& text, double& value) { value = std::strtod(text.c_str(), nullptr); }
  static void read(const std::string& text, std::string& value) { value = text; }
  template <class T> static void read_all(const std::vector<std::string>& texts, T& value) {
    if (!texts.empty()) read(texts.front(), value);
  }
  template <class T> static void read_all(const std::vector<std::string>& texts, std::vector<T>& values) {
    for (const std::string& text : texts) read(text, values.emplace_back());
  }

  static std::string text_of(bool value) { return value ? "true" : "false"; }
  static std::string text_of(Index value) { return std::to_string(value); }
  static std::string text_of(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  }
  static const std::string& text_of(const std::string& value) { return value; }
  template <class T> static void add_value(Call& call, const T& value) {
    call.add(Index(1));
    call.add(std::string_view(text_of(value)));
  }
  template <class T> static void add_value(Call& call, const std::vector<T>& values) {
    call.add(Index(values.size()));
    for (const T& value : values) call.add(std::string_view(text_of(value)));
  }

  void declare(Schema& s, const Option& option) {
    const std::pair<const char*, Value> kinds[] = {
        {"bool", false},
        {"int", Index()},
        {"float", 0.0},
        {"str", std::string()},
        {"list[int]", std::vector<Index>()},
        {"list[float]", std::vector<double>()},
        {"list[str]", std::vector<std::string>()},
    };
    const auto kind = std::ranges::find(kinds, option.type, [](const auto& k) { return std::string(k.first); });
    std::visit(
        [&](auto& value) {
          read_all(option.fallback, value);
          auto field = s.field(option.key, value, option.meaning);
          if (option.required) field.required();
          if (!option.choices.empty()) field.one_of(option.choices);
        },
        values_.emplace_back(kind->second));
  }

  std::deque<Value> values_;  // in the order of worker->options()
};

}  // namespace stiefel::python
