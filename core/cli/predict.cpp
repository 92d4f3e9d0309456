// `stiefel predict RUN --input FILE`: outputs of a trained network for new sequences, as CSV.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <system_error>

#include "base/atomic_file.hpp"
#include "base/file_error.hpp"
#include "results/analysis/run_tables.hpp"
#include "training/prediction.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"

namespace stiefel::cli {
namespace {

/// Writes CSV to standard output, to a device or pipe, or to a file that appears once it is complete.
class CsvOutput {
 public:
  explicit CsvOutput(const std::string& target) : target_(target) {
    if (target != "-" && is_device(target))
      device_.reset(std::fopen(target.c_str(), "wb"));
    else if (target != "-")
      file_.emplace(behind_link(target));
    if (target != "-" && !file_ && !device_) throw file_error("opening", target, errno);
  }
  void write(const std::vector<std::string>& fields) {
    for (const std::string& field : fields) {
      if (&field != &fields[0]) waiting_ += ',';
      waiting_ += csv_quoted(field);
    }
    waiting_ += '\n';
    if (!file_ || waiting_.size() > 1 << 16) flush();
  }
  void finish() {
    flush();
    if (!file_) return;
    file_->replace();
    file_->sync_directory();
  }

 private:
  void flush() {
    if (file_) {
      file_->write(waiting_);
    } else if (std::FILE* stream = device_ ? device_.get() : stdout;
               std::fwrite(waiting_.data(), 1, waiting_.size(), stream) != waiting_.size() ||
               std::fflush(stream) != 0) {
      if (device_) throw file_error("writing", target_, errno);
      throw std::system_error(errno, std::generic_category());
    }
    waiting_.clear();
  }

  struct Close {
    void operator()(std::FILE* stream) const { std::fclose(stream); }
  };
  std::optional<AtomicFile> file_;
  std::unique_ptr<std::FILE, Close> device_;
  std::string target_, waiting_;
};

}  // namespace

int predict_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("predict", words);
  const std::filesystem::path directory =
      run_folder(arguments, "name the folder of one run: stiefel predict RUN --input FILE", true);
  if (arguments.positional.size() > 1)
    throw Error(
        fmt::format("predict takes one run and no settings, so leave '{}' out; if data files of the run were "
                    "moved, name their folder with --data",
                    arguments.positional[1]));
  if (!arguments.has("--input")) throw Error("name the file with the sequences: --input FILE, or - for standard input");
  PredictionOptions options;
  options.network = chosen_network(directory, arguments);
  options.input = arguments.value("--input");
  if (options.input == "-") options.input = "/dev/stdin";
  options.lengths = arguments.value("--lengths", "");
  options.raw = arguments.has("--raw");
  options.states = arguments.has("--states");
  options.every_step = arguments.has("--every-step");
  OpenedRun run(directory, arguments);
  if (std::error_code none; std::filesystem::equivalent(options.input, arguments.value("--output"), none))
    throw Error("--output is the file of --input, which would be replaced; choose another one");
  CsvOutput output(arguments.value("--output", "-"));
  predict(run.loaded, run.registry, run.options, options,
          [&](const std::vector<std::string>& fields) { output.write(fields); });
  output.finish();
  return int(Exit::done);
}

}  // namespace stiefel::cli
