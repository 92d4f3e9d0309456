#include "results/analysis/labels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include <stiefel/error.hpp>

#include "base/suggestion.hpp"

namespace stiefel {

Labels::Labels(const std::vector<std::string>& texts, const std::vector<std::string>& keys,
               const std::vector<ComparedRun>& runs) {
  for (const std::string& text : texts) {
    const std::size_t sign = text.find('=');
    const std::string key = text.substr(0, sign), rest = sign == text.npos ? "" : text.substr(sign + 1);
    if (key.empty() || rest.empty() || rest.ends_with(':'))
      throw Error(fmt::format("--label {}: write KEY=TEXT, or KEY=VALUE:TEXT for a value", text));
    if (std::ranges::find(keys, key) == keys.end()) {
      const std::string close = suggestion(key, keys);
      throw Error(fmt::format("--label {}: the groups do not differ in {}{}", text, key,
                              !close.empty() ? close
                              : keys.empty() ? "; there is one group"
                                             : fmt::format("; label one of {}", fmt::join(keys, ", "))));
    }
    if (rest.find(':') == rest.npos) {
      keys_[key] = rest;
      continue;
    }
    std::set<std::string> values;
    bool found = false;
    for (const ComparedRun& run : runs) {
      const std::string value = run.text(key);
      values.insert(value);
      for (std::size_t colon = rest.find(':'); colon != rest.npos; colon = rest.find(':', colon + 1))
        if (value.find(changed_to) == value.npos && Condition(key + "=" + rest.substr(0, colon)).holds(run)) {
          values_[{key, value}] = rest.substr(colon + 1);
          found = true;
        }
    }
    if (!found)
      throw Error(fmt::format("--label {}: no run has {}={}; choose from {}", text, key, rest.substr(0, rest.find(':')),
                              fmt::join(values, ", ")));
  }
}

std::string Labels::key(const std::string& key, const std::string& otherwise) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? otherwise : found->second;
}

std::string Labels::value(const std::string& key, const std::string& value) const {
  const auto found = values_.find({key, value});
  return found == values_.end() ? value : found->second;
}

}  // namespace stiefel
