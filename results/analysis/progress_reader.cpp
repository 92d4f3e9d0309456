// Follows a file to which a writer appends complete lines.
#include "results/analysis/progress_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file_content.hpp"
#include "base/json_text.hpp"
#include "record/progress.hpp"
#include "record/run_folder.hpp"
#include "record/run_lock.hpp"

namespace stiefel {
namespace {

constexpr std::size_t most_losses = 1024, longest_line = 65536;
constexpr std::uintmax_t most_at_once = 64 << 20;

double number_of_key(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::int64_t count(const nlohmann::json& object, const char* key) {
  const double value = number_of_key(object, key);
  return value >= 0 && value < 9e15 ? std::int64_t(value) : -1;
}

/// How the run ended, by the last line of its log that says so; empty if there is none or the run was resumed after it.
std::string ending_in(const std::string& log) {
  static constexpr std::array endings = {"finished", "preempted", "failed", "diverged"};
  std::string ending;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line(log.data() + begin, end - begin);
    if (line.starts_with("resumed ") || line.starts_with("step ")) ending.clear();
    for (const std::string_view word : endings)
      if (line.starts_with(word) && line.substr(word.size()).starts_with(": ")) ending = word;
    begin = end + 1;
  }
  return ending;
}

}  // namespace

std::optional<ProgressLine> parse_progress(std::string_view text) {
  if (text.size() > longest_line) return {};
  const nlohmann::json object = parse_json_or_discard(text);
  if (!object.is_object()) return {};
  const bool resumed = object.contains("resumed_after");
  ProgressLine line{count(object, resumed ? "resumed_after" : "step"),
                    count(object, "steps"),
                    number_of_key(object, "seconds"),
                    number_of_key(object, "step_seconds"),
                    number_of_key(object, "loss"),
                    number_of_key(object, "best"),
                    resumed};
  return line.step < 0 ? std::nullopt : std::optional(line);
}

void ProgressReader::update() {
  std::ifstream file(RunFolder{run_}.progress(), std::ios::binary | std::ios::ate);
  if (file) {
    const auto size = std::uintmax_t(std::max<std::streamoff>(file.tellg(), 0));
    if (size < position_) *this = ProgressReader(std::move(run_));  // replaced, or cut on resuming
    if (size > position_ + most_at_once) {
      position_ = size - most_at_once;
      pending_.clear();
    }
    file.seekg(std::streamoff(position_));
    const std::string name = name_of_run(run_);
    std::array<char, 65536> part;
    while (position_ < size) {
      file.read(part.data(), std::streamsize(std::min<std::uintmax_t>(part.size(), size - position_)));
      const std::size_t got = std::size_t(file.gcount());
      if (got == 0) break;
      position_ += got;
      pending_.append(part.data(), got);
      std::size_t begin = 0;
      for (std::size_t end; (end = pending_.find('\n', begin)) != pending_.npos; begin = end + 1)
        if (const auto text = std::string_view(pending_).substr(begin, end - begin); is_progress_of(name, text))
          if (const auto line = parse_progress(text)) add(*line);
      pending_.erase(0, begin);
      if (pending_.size() > longest_line) pending_.clear();
    }
    pending_.shrink_to_fit();
  }
  read_state();
}

void ProgressReader::add(const ProgressLine& line) {
  if (line.step < latest_.step) {  // a resumed run goes back to its checkpoint
    losses_.clear();
    stride_ = 1, seen_ = 0;
  }
  const auto take = [](double& latest, double value) {
    if (std::isfinite(value)) latest = value;
  };
  if (line.resumed || line.step < latest_.step || !std::isfinite(first_.seconds)) first_ = line;
  if (std::isfinite(line.seconds)) timed_ = line;
  latest_.step = line.step;
  if (line.steps >= 0) latest_.steps = line.steps;
  latest_.seconds = timed_.seconds;
  take(latest_.step_seconds, line.step_seconds), take(latest_.best, line.best);
  if (!std::isfinite(line.loss)) return;
  latest_.loss = line.loss;
  if (seen_++ % stride_ == 0) losses_.push_back(line.loss);
  if (losses_.size() <= most_losses) return;
  for (std::size_t i = 0; 2 * i < losses_.size(); ++i) losses_[i] = losses_[2 * i];
  losses_.resize((losses_.size() + 1) / 2);
  stride_ *= 2;
}

void ProgressReader::read_state() {
  std::error_code closed;
  if (!std::filesystem::exists(RunFolder{run_}.config(), closed) && closed) {
    state_ = "unreadable";
    return;
  }
  if (!closed && !std::filesystem::exists(run_, closed)) {
    state_ = "waiting";
    return;
  }
  if (!shown_owner(RunFolder{run_}.lock()).empty()) {
    state_ = "running";
    return;
  }
  state_ = ending_in(file_tail(RunFolder{run_}.log()));
  if (state_.empty() || state_ == "preempted") state_ = "stopped";
}

double ProgressReader::seconds_left() const {
  if (latest_.step < 0 || latest_.steps < latest_.step) return std::nan("");
  const double seconds = timed_.seconds - first_.seconds;
  const double a_step =
      timed_.step > first_.step && seconds > 0 ? seconds / double(timed_.step - first_.step) : latest_.step_seconds;
  return double(latest_.steps - latest_.step) * a_step;
}

double seconds_left(std::span<const ProgressReader* const> runs) {
  double left = 0, whole = 0;
  int running = 0, waiting = 0, known = 0;
  for (const ProgressReader* run : runs) {
    const bool runs_now = run->state() == "running";
    const double rest = runs_now ? run->seconds_left() : 0, all = run->latest().seconds + rest;
    running += runs_now, left += rest;
    waiting += run->state() == "waiting";
    if ((runs_now || run->state() == "finished") && std::isfinite(all)) ++known, whole += all;
  }
  return running == 0 ? std::nan("") : (left + (waiting > 0 ? waiting * whole / known : 0)) / running;
}

}  // namespace stiefel
