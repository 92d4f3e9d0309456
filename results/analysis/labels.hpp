/// Other names for keys and values, in tables and figures for people.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/export.hpp>

#include "results/analysis/comparison.hpp"

namespace stiefel {

class STIEFEL_API Labels {
 public:
  Labels() = default;
  /// From texts such as "optimizer.rate=learning rate" and "model.recurrent.plugin=householder:oRNN"; a colon separates
  /// a value from its name. Throws Error for a text of another form, a key that is not among `keys`, and a value that
  /// no run has.
  Labels(const std::vector<std::string>& texts, const std::vector<std::string>& keys,
         const std::vector<ComparedRun>& runs);

  /// The name of a key; `otherwise` if it got none.
  std::string key(const std::string& key, const std::string& otherwise) const;
  bool has(const std::string& key, const std::string& value) const { return values_.contains({key, value}); }
  /// The name of a value; the value itself if it got none.
  std::string value(const std::string& key, const std::string& value) const;

 private:
  std::map<std::string, std::string> keys_;
  std::map<std::pair<std::string, std::string>, std::string> values_;
};

}  // namespace stiefel
