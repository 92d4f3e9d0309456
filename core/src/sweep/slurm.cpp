// The script asks SLURM for a signal two minutes before the time limit: then the run saves a checkpoint, and the element is queued again.
#include "sweep/slurm.hpp"

#include <fmt/format.h>

#include "results/atomic_file.hpp"
#include "results/file_error.hpp"
#include "sweep/state.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

constexpr const char* body = R"bash(
finish() {  # lets the run save a checkpoint; `again`: this element goes back into the queue
  trap '' USR1 TERM INT
  kill -TERM "$worker"
  wait "$worker"
  code=$?
  if [[ "$1" == again && $code -ne 0 ]]; then scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"; fi
  exit $code
}
trap 'finish again' USR1
trap 'finish stop' TERM INT
"${command[@]}" --run "${runs[SLURM_ARRAY_TASK_ID]}" &
worker=$!
wait "$worker"
)bash";

std::string script(const SweepFolder& folder, const SlurmOptions& options, const std::vector<std::string>& ids) {
  const fs::path sweep = fs::absolute(folder.path()).lexically_normal();
  std::string text = "#!/bin/bash\n";
  const auto directive = [&](const std::string& option) { text += fmt::format("#SBATCH {}\n", option); };
  directive(fmt::format("--job-name={}", quoted(folder.sweep().name)));
  directive(fmt::format("--array=0-{}", ids.size() - 1));
  directive("--requeue");
  directive("--open-mode=append");
  directive("--signal=B:USR1@120");
  directive(fmt::format("--output={}", quoted((sweep / "slurm" / "%A_%a.log").string())));
  if (!options.time.empty()) directive("--time=" + options.time);
  if (options.threads > 0) directive(fmt::format("--cpus-per-task={}", options.threads));
  for (const std::string& option : options.further) directive(option);
  text += fmt::format("runs=({})\n", fmt::join(ids, " "));
  text += fmt::format("command=({} worker {}", quoted(fs::read_symlink("/proc/self/exe").string()), quoted(sweep.string()));
  if (options.threads > 0) text += fmt::format(" --threads {}", options.threads);
  if (!options.data_directory.empty()) text += fmt::format(" --data {}", quoted(fs::absolute(options.data_directory).string()));
  return text + ")" + body;
}

}  // namespace

std::vector<fs::path> write_slurm_scripts(const SweepFolder& folder, const SlurmOptions& options) {
  const std::vector<RunLook> looks = look_at_all(folder, {});
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (looks[i].state == SweepState::waiting || looks[i].state == SweepState::stopped) ids.push_back(folder.sweep().runs[i].id);
  const fs::path scripts = folder.path() / "slurm";
  std::error_code error;
  fs::create_directories(scripts, error);
  if (error) throw file_error("making", scripts, error.value());
  std::vector<fs::path> written;
  for (std::size_t first = 0; first < ids.size(); first += std::size_t(options.array_limit)) {
    const std::size_t last = std::min(ids.size(), first + std::size_t(options.array_limit));
    written.push_back(scripts / fmt::format("array_{}.sh", written.size()));
    replace_file(written.back(), script(folder, options, {ids.begin() + Index(first), ids.begin() + Index(last)}));
  }
  return written;
}

}  // namespace stiefel
