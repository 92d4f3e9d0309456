#include "cli/sweep_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "training/dry_run.hpp"

namespace stiefel::cli {

std::string missing_data(const LoadedExperiment& loaded, Registry& registry, const Arguments& arguments,
                         const std::function<void(const std::string&)>& warn) {
  RunOptions options;
  options.data_directory = data_directory(arguments);
  options.check_data = demand_readable_networks;
  try {
    for (const std::string& remark : check_experiment(loaded, registry, options)) warn(remark);
  } catch (const Error& error) {
    if (!error.is_missing()) throw;
    return error.what();
  }
  return {};
}

SweepCheck::SweepCheck(std::string file, Registry& registry, const Arguments& arguments, std::chrono::seconds limit)
    : file_(std::move(file)), registry_(registry), arguments_(arguments), end_(Clock::now() + limit) {}

void SweepCheck::operator()(const LoadedExperiment& loaded, const SweepRun& run, const Sweep& sweep) {
  const std::string values = assignments(sweep, run, "seed"), which = values.empty() ? "" : " (with " + values + ")";
  if (checked_.contains(values)) return;
  if (left_off_ || Clock::now() >= end_) {
    left_off_ = true;
    return;
  }
  checked_.insert(values);
  try {
    const std::string missing = missing_data(loaded, registry_, arguments_, [&](const std::string& remark) {
      if (said_.insert(remark).second) print_warning(remark);
    });
    if (missing_.empty() && !missing.empty()) missing_ = missing + which;
  } catch (const Error& error) {
    const std::string sentence = error.what();
    const bool placed = std::ranges::any_of(
        loaded.sources, [&](const SourceFile& source) { return sentence.starts_with(source.path + ":"); });
    errors_ += printable_lines((placed ? "" : file_ + ": ") + sentence + which) + "\n";
    if (count_++ == 0) code_ = int(error.code());
  }
}

std::size_t SweepCheck::tell_errors() const {
  say("{}", errors_);
  return count_;
}

int SweepCheck::finish() const {
  if (tell_errors() > 0) say("{}: {}\n", printable(file_), counted(count_, "error"));
  return code_;
}

}  // namespace stiefel::cli
