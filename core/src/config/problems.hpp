// Places in configuration files, and the list of all errors in a configuration: collected first, reported together.
#pragma once

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

class STIEFEL_API Problems {
 public:
  /// The same message about the same place counts once.
  void add(const Location& where, std::string sentence, Exit code = Exit::usage);
  bool empty() const { return list_.empty(); }
  std::size_t count() const { return list_.size(); }
  /// One line each, "file:line:column: sentence": by file in the order of first mention, then by line; the command line
  /// last.
  std::string text() const;
  /// Throws one Error with all lines, if there are any.
  void raise() const;

 private:
  struct Problem {
    Location where;
    std::string sentence;
    Exit code;
  };
  std::vector<Problem> list_;
};

}  // namespace stiefel
