// A run's files come before its recorded failure: a run that a user has finished by hand is finished.
#include "sweep/state.hpp"

#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "base/file_error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "record/reader.hpp"
#include "record/run_folder.hpp"
#include "sweep/halving.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

RunLook read_failure(const fs::path& path) {
  try {
    const nlohmann::json json = parse_json(file_content(path));
    const int code = json.at("exit_code");
    return {code == int(Exit::diverged) ? SweepState::diverged : SweepState::failed, 0,
            printable_lines(std::string(json.at("message"))), code};
  } catch (const nlohmann::json::exception&) {
    return {SweepState::failed, 0, path.string() + " is damaged", int(Exit::damaged)};
  }
}

}  // namespace

const char* name_of(SweepState state) {
  static constexpr const char* names[] = {"waiting",  "stopped",  "at rung", "running",
                                          "finished", "diverged", "failed",  "left out"};
  return names[int(state)];
}

RunLook look_at(const SweepFolder& folder, const SweepRun& run, const LockPatience& patience) {
  const fs::path directory = folder.run(run), results = RunFolder{directory}.results();
  RunLook look;
  if (fs::exists(results)) {  // the sweep's workers wrote it, so it need not be read in a separate process
    try {
      const ResultReader reader(results);
      look.step = Index(reader.number_attribute("/", "committed_step"));
      look.state = reader.text_attribute("/", "state") == "finished" ? SweepState::finished : SweepState::stopped;
      look.message = printable(reader.text_attribute("/status", "message"));
    } catch (const Error& error) {
      look = {SweepState::failed, 0, error.what(), int(Exit::damaged)};
    }
  } else if (fs::exists(RunFolder{directory}.config())) {
    look.state = SweepState::stopped;
  }
  if (look.state == SweepState::finished) return look;
  if (!living_owner(RunFolder{directory}.lock(), patience).empty()) {
    look.state = SweepState::running;
  } else if (fs::exists(folder.failure(run))) {
    const Index step = look.step;
    look = read_failure(folder.failure(run));
    look.step = step;
  }
  return look;
}

std::vector<RunLook> look_at_all(const SweepFolder& folder, const LockPatience& patience) {
  std::vector<RunLook> looks;
  for (const SweepRun& run : folder.sweep().runs) looks.push_back(look_at(folder, run, patience));
  const std::vector<Target> targets = Rungs(folder).targets(looks);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (looks[i].state != SweepState::waiting && looks[i].state != SweepState::stopped) continue;
    if (targets[i].left_out)
      looks[i].state = SweepState::left_out;
    else if (!living_owner(RunFolder{folder.claim(folder.sweep().runs[i])}.lock(), patience).empty())
      looks[i].state = SweepState::running;
    else if (targets[i].step > 0 && looks[i].step >= targets[i].step)
      looks[i].state = SweepState::at_rung;
  }
  return looks;
}

void record_failure(const SweepFolder& folder, const SweepRun& run, int exit_code, const std::string& message) {
  const nlohmann::ordered_json json = {{"exit_code", exit_code}, {"message", message}};
  replace_file(folder.failure(run), json_text(json, 2) + "\n");
}

bool forget_failure(const SweepFolder& folder, const SweepRun& run) {
  std::error_code error;
  const bool removed = fs::remove(folder.failure(run), error);
  if (error) throw file_error("removing", folder.failure(run), error.value());
  return removed;
}

}  // namespace stiefel
