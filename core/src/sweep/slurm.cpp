// The script asks SLURM for a signal two minutes before the time limit: then the run saves a checkpoint, and the
// element is queued again.
#include "sweep/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <functional>
#include <map>

#include "base/atomic_file.hpp"
#include "base/file_error.hpp"
#include "base/printable.hpp"
#include "sweep/halving.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

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
"$stiefel" worker "$sweep" --run "${runs[SLURM_ARRAY_TASK_ID]}" "${options[@]}" &
worker=$!
wait "$worker"
)bash";

/// Lines that read the runs of an array, from `first`, when the rung before it has ended.
std::string runs_after(Index step, std::size_t first) {
  return fmt::format(R"bash("$stiefel" sweep status "$sweep" > /dev/null
rung="$sweep/rungs/{0}.tsv"
if [[ ! -e $rung ]]; then
  echo "some runs have not reached step {0}: stiefel sweep status lists them, and stiefel slurm writes scripts for the rest" >&2
  exit {1}
fi
mapfile -t runs < <(awk -F '\t' '$3 == 1 {{print $1}}' "$rung" | tail -n +{2})
if [[ $SLURM_ARRAY_TASK_ID -ge ${{#runs[@]}} ]]; then exit 0; fi
)bash",
                     step, int(Exit::preempted), first + 1);
}

class Scripts {
 public:
  Scripts(const SweepFolder& folder, const SlurmOptions& options)
      : folder_(folder), options_(options), sweep_(fs::absolute(folder.path()).lexically_normal().string()) {
    for (const std::string& path : {fs::current_path().string(), sweep_})
      if (path.find('\\') != path.npos)
        throw Error(
            fmt::format("Slurm cannot use the path {}, because it contains a backslash; rename the folder", path));
    make_folder(folder.path() / "slurm");
  }

  /// Writes arrays NAME_0.sh, NAME_1.sh, … with this many elements in total; runs(first, last) sets `runs`.
  std::vector<fs::path> write(const std::string& name, std::size_t elements,
                              const std::function<std::string(std::size_t first, std::size_t last)>& runs) const {
    std::vector<fs::path> written;
    for (std::size_t first = 0; first < elements; first += std::size_t(options_.array_limit)) {
      const std::size_t last = std::min(elements, first + std::size_t(options_.array_limit));
      written.push_back(folder_.path() / "slurm" / fmt::format("{}_{}.sh", name, written.size()));
      replace_file(written.back(), head(last - first) + runs(first, last) + body);
    }
    return written;
  }

 private:
  std::string head(std::size_t elements) const {
    std::string text = "#!/bin/bash\n";
    const auto directive = [&](const std::string& option) { text += fmt::format("#SBATCH {}\n", option); };
    directive("--job-name=" + shell_word(folder_.sweep().name));
    directive(fmt::format("--array=0-{}{}", elements - 1, options_.jobs > 0 ? fmt::format("%{}", options_.jobs) : ""));
    directive("--chdir=" + shell_word(fs::current_path().string()));
    directive("--requeue");
    directive("--open-mode=append");
    directive("--signal=B:USR1@120");
    directive("--output=" + shell_word(boost::replace_all_copy(sweep_, "%", "%%") + "/slurm/%A_%a.log"));
    if (!options_.time.empty()) directive("--time=" + shell_word(options_.time));
    if (options_.threads > 0) directive(fmt::format("--cpus-per-task={}", options_.threads));
    for (const std::string& option : options_.further) {
      const std::size_t value = std::min(option.find('='), option.size() - 1) + 1;
      directive(option.substr(0, value) + (value < option.size() ? shell_word(option.substr(value)) : ""));
    }
    std::vector<std::string> words;
    if (options_.threads > 0) words.insert(words.end(), {"--threads", std::to_string(options_.threads)});
    if (!options_.data_directory.empty())
      words.insert(words.end(), {"--data", shell_word(fs::absolute(options_.data_directory).string())});
    return text + fmt::format("stiefel={}\nsweep={}\noptions=({})\n",
                              shell_word(fs::read_symlink("/proc/self/exe").string()), shell_word(sweep_),
                              fmt::join(words, " "));
  }

  const SweepFolder& folder_;
  const SlurmOptions& options_;
  const std::string sweep_;
};

}  // namespace

std::vector<std::vector<fs::path>> write_slurm_scripts(const SweepFolder& folder, const SlurmOptions& options) {
  const Sweep& sweep = folder.sweep();
  const std::vector<RunLook> looks = look_at_all(folder, by_file_time(usual_patience));
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (looks[i].state == SweepState::waiting || looks[i].state == SweepState::stopped) ids.push_back(sweep.runs[i].id);
  if (ids.empty()) return {};
  const Scripts scripts(folder, options);
  std::vector<std::vector<fs::path>> stages = {
      scripts.write("array", ids.size(), [&](std::size_t first, std::size_t last) {
        return fmt::format("runs=({})\n", fmt::join(ids.begin() + Index(first), ids.begin() + Index(last), " "));
      })};
  if (!sweep.halving) return stages;
  const std::vector<Target> targets = Rungs(folder).targets(looks);
  std::map<std::vector<std::string>, std::size_t> seeds;  // by setting
  const std::vector<std::vector<std::string>> all = settings_of(sweep);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (!targets[i].left_out) ++seeds[all[i]];
  std::size_t settings = seeds.size(), most_seeds = 0;
  for (const auto& [setting, count] : seeds) most_seeds = std::max(most_seeds, count);
  const Index present = std::ranges::find(targets, false, &Target::left_out)->step;
  for (const Index step : sweep.halving->rungs) {
    if (present == 0 || step < present) continue;
    settings = survivor_count(settings, sweep.halving->factor);
    stages.push_back(scripts.write(fmt::format("after_{}", step), settings * most_seeds,
                                   [&](std::size_t first, std::size_t) { return runs_after(step, first); }));
  }
  return stages;
}

}  // namespace stiefel
