// The method under test: how its objects are made, and every call into it named.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "conformance/check.hpp"
#include "conformance/effects.hpp"
#include "host/plugin_call.hpp"
#include "host/plugin_faults.hpp"

namespace stiefel::conformance {

template <class S> constexpr const char* scalar_name = std::is_same_v<S, float> ? "float32" : "float64";

/// What count() returns more than once: what is set up once, by the plugin or a library below it, does not count.
template <class F> long repeated_allocations(F&& count) {
  constexpr int repeats = 8;
  std::vector<long> counts;
  for (int k = 0; k < repeats; ++k) counts.push_back(count());
  std::ranges::sort(counts);
  return counts[repeats - 2];
}

class Subject {
 public:
  /// `effects` may be null: they are not looked for.
  Subject(const Entry& entry, std::filesystem::path file, const CheckSettings& settings, Progress& progress,
          Effects* effects = nullptr)
      : entry(entry), file(std::move(file)), settings(settings), progress_(progress), effects_(effects) {
    write(progress_.method, entry.name);
  }
  /// The same method with separate observers, for another thread.
  Subject(const Subject& other, Progress& progress)
      : entry(other.entry), file(other.file), settings(other.settings), options(other.options), progress_(progress) {}

  /// A call into the plugin; whatever it throws arrives as an Error that names verb, method and file.
  template <class F> auto call(const char* verb, F&& f) const {
    write(progress_.verb, verb);
    ++progress_.calls;
    const Effects::Call compared(effects_, verb);
    return guarded(verb, entry.name, file, std::forward<F>(f));
  }
  void enter(std::string_view check) const {
    write(progress_.check, check);
    ++progress_.calls;
  }

  bool counts_allocations() const { return settings.allocations != nullptr; }
  /// Allocations in a call of f(), which calls the plugin.
  template <class F> long allocations(const char* verb, F&& f) const {
    return repeated_allocations([&] {
      long before = 0, after = 0;
      call(verb, [&] {
        before = settings.allocations();
        f();
        after = settings.allocations();
      });
      return after - before;
    });
  }

  /// An object of the role's base class, e.g. create<Cell<float>>(context).
  template <class Base, class Context> std::unique_ptr<Base> create(const Context& context) const {
    return call("create", [&] { return created<Base>(entry, options.get(), &context); });
  }
  template <class Base> std::unique_ptr<Base> create() const {
    return call("create", [&] { return created<Base>(entry, options.get()); });
  }

  template <class S> bool wants() const {
    const auto& s = settings.scalars;
    return std::find(s.begin(), s.end(), scalar_name<S>) != s.end();
  }
  std::vector<std::uint64_t> seeds(std::uint64_t count) const {
    if (!settings.seeds.empty()) return settings.seeds;
    std::vector<std::uint64_t> all;
    for (std::uint64_t s = 1; s <= count; ++s) all.push_back(s);
    return all;
  }
  /// Races do not depend on the seed, so they are looked for at two seeds, however many there are.
  bool among_first(std::uint64_t seed) const {
    const auto& s = settings.seeds;
    return s.empty() || seed == s.front() || seed == s[std::min<std::size_t>(1, s.size() - 1)];
  }
  bool complex() const {
    return call("complex_pairs", [&] { return entry.complex_pairs(options.get()); });
  }

  const Entry& entry;
  std::filesystem::path file;
  const CheckSettings& settings;
  std::shared_ptr<void> options;

 private:
  template <std::size_t N> static void write(char (&field)[N], std::string_view text) {
    const std::size_t length = std::min(text.size(), N - 1);
    std::memcpy(field, text.data(), length);
    field[length] = 0;
  }
  Progress& progress_;
  Effects* effects_ = nullptr;  // of the main thread only
};

/// Runs one check; an exception out of it is its failure and the end of the method's checks.
template <class F> void attempt(const Subject& subject, CheckReport& report, std::string_view check, F&& f) {
  subject.enter(check);
  try {
    f();
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception& e) {
    report.demand(check, false, e.what());
  }
}

/// Reported under "allocation".
inline void require_no_allocation(CheckReport& report, const char* verb, long allocations) {
  report.require(
      "allocation", allocations == 0,
      fmt::format("{} allocates memory {} times in a call; take working memory from `scratch`, keep state in "
                  "members, and write `.noalias() =` for products",
                  verb, allocations));
}

/// Meaning, default and range of every option; reported under "options".
void check_options(const Subject& subject, CheckReport& report, const Registry& registry);

void check_parametrisation(const Subject& subject, CheckReport& report);
void check_cell(const Subject& subject, CheckReport& report);
void check_task(const Subject& subject, CheckReport& report);
void check_optimizer(const Subject& subject, CheckReport& report);

}  // namespace stiefel::conformance
