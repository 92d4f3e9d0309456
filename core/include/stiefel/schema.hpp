/// Options are described once: `describe(Schema&)` reads them from YAML, checks them, documents them, and writes them
/// into config.yaml and the run's ID.
///
///   struct Options {
///     Index reflections = 16;
///     void describe(Schema& s) { s.field("reflections", reflections, "number of reflections m").at_least(1); }
///   };
///
/// The default is the member's initializer. An unknown key, a duplicate key, and a value of the wrong type or outside
/// its range are errors with file:line:column; all errors are collected before any is reported.
///
/// Fields are implemented in core/src/config/schema.cpp, sections and lists in config_schema.cpp, plugins in
/// plugin_node.cpp.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/index.hpp>

namespace stiefel {

class Schema;
namespace detail {
struct Section;
}

/// Constraints on a field just declared. A call only notes and documents the constraint; the value is checked at the next
/// Schema::check() or at the end of describe(). As errors are collected, describe() may see a value outside it.
template <class T> class STIEFEL_API Field {
 public:
  Field& at_least(double low);
  Field& more_than(double low);
  Field& at_most(double high);
  Field& less_than(double high);
  Field& one_of(std::initializer_list<std::string_view> values);  ///< for text, and for every entry of a list of text
  Field& one_of(std::vector<std::string> values);                 ///< the same for values known only when it runs
  Field& required();                                              ///< the key must be given; there is no default
  Field& units(std::string_view units);
  /// Unless `holds`, the field has no effect, and a run warns of a value other than the default. `where` names the
  /// cases in which it has an effect: .only_if(kind != "none", "`kind: norm`").
  Field& only_if(bool holds, std::string_view where);
  /// The default does what runs did before the option existed, so only another value is part of a run's ID: `run` does
  /// not train finished runs again because a plugin has a new option.
  Field& not_in_id_at_default();
  /// A run that has begun cannot be resumed with another value, whatever --allow-change says. `why` completes "KEY cannot
  /// be changed in a run that has begun: ". Any other key of an unfinished run can change with --allow-change, unless the
  /// run has no results yet or its checkpoint does not fit.
  Field& fixed_once_begun(std::string_view why);

 private:
  friend class Schema;
  Field(Schema& schema, std::size_t entry) : schema_(schema), entry_(entry) {}
  Schema& schema_;
  std::size_t entry_;
};

/// What a describe() gets; always a ConfigSchema of the runtime (core/src/config/config_schema.hpp).
class STIEFEL_API Schema {
 public:
  virtual ~Schema();

  Field<bool> field(std::string_view key, bool& value, std::string_view meaning);
  Field<Index> field(std::string_view key, Index& value, std::string_view meaning);
  Field<double> field(std::string_view key, double& value, std::string_view meaning);
  Field<std::string> field(std::string_view key, std::string& value, std::string_view meaning);
  Field<std::vector<Index>> field(std::string_view key, std::vector<Index>& value, std::string_view meaning);
  Field<std::vector<double>> field(std::string_view key, std::vector<double>& value, std::string_view meaning);
  Field<std::vector<std::string>> field(std::string_view key, std::vector<std::string>& value,
                                        std::string_view meaning);

  /// A required field with the path of a file that belongs to the method itself, such as a script, whose own options
  /// can be declared after it. A relative path starts in the folder of the file that gives it, and `path` becomes
  /// absolute; it stays empty, and keys that are not declared are no errors, if no file is given or it cannot be read or
  /// fails a check(). A run's ID has only the file's name, but a changed file counts as a rebuilt plugin.
  void part(std::string_view key, std::string& path, std::string_view meaning);
  /// Says what the part declared last works with, such as the versions of an interpreter and its libraries: recorded
  /// with a run, and compared like its content.
  void works_with(std::string_view versions);

  /// A nested mapping with its own describe().
  template <class Options> void section(std::string_view key, Options& options, std::string_view meaning) {
    Schema& inner = enter(key, meaning);
    options.describe(inner);
    leave(inner);
  }

  /// `key: text` is accepted for `key: {first: text}` of the section being described. Call it first.
  void shorthand(std::string_view first);

  /// A condition over several fields; `key` is the field that the error message points to.
  void check(bool holds, std::string_view key, std::string_view sentence);

 protected:
  explicit Schema(std::unique_ptr<detail::Section> section);
  std::unique_ptr<detail::Section> section_;

 private:
  template <class T> friend class Field;
  template <class T> Field<T> declare(std::string_view key, T& value, std::string_view meaning);
  Schema& enter(std::string_view key, std::string_view meaning);
  void leave(Schema& inner);
};

}  // namespace stiefel
