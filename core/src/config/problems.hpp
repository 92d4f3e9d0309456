// Places in configuration files, and the list of all errors in a configuration: collected first, reported together.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <stiefel/error.hpp>
#include <stiefel/export.hpp>

namespace stiefel {

/// A place in a file, 1-based; without a file it is the command line.
struct Location {
  std::string file;
  int line = 0, column = 0;
  bool operator==(const Location&) const = default;

  std::string text() const;    ///< "file:3:5", "file" or "command line"
  std::string origin() const;  ///< "file:3" or "command line"
};

/// All problems of a configuration.
class STIEFEL_API ConfigError : public Error {
 public:
  ConfigError(const std::string& text, Exit code, std::size_t count) : Error(text, code), count_(count) {}
  ~ConfigError() override;
  std::size_t count() const noexcept { return count_; }

 private:
  std::size_t count_;
};

class STIEFEL_API Problems {
 public:
  /// The same message about the same place counts once.
  void add(const Location& where, std::string sentence, Exit code = Exit::usage);
  bool empty() const { return list_.empty(); }
  std::size_t count() const { return list_.size(); }
  /// One line each, "file:line:column: sentence": by file in the order of first mention, then by line; the command line
  /// last. Of many only the first ones, and how many more there are.
  std::string text() const;
  /// Throws one ConfigError with this text, if there are any.
  void raise() const;

 private:
  struct Problem {
    Location where;
    std::string sentence;
    Exit code;
  };
  std::vector<Problem> list_;
  std::set<std::string> seen_;  // lines
};

}  // namespace stiefel
