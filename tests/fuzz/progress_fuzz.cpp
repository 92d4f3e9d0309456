// Whatever a crash left of progress.jsonl, a resumed run keeps a part from its beginning and marks the restart, the next
// line stands for itself, and a reader of the whole file gets to it.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "record/progress.hpp"
#include "record/run_lock.hpp"
#include "results/analysis/progress_reader.hpp"

namespace stiefel {
double seconds_since_1970() { return 1; }
std::string shown_owner(const std::filesystem::path&) { return {}; }
}  // namespace stiefel

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("stiefel_progress_fuzz_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "progress.jsonl";
  const std::string before(reinterpret_cast<const char*>(data), size);
  std::ofstream(path, std::ios::binary) << before;
  const std::pair<std::string, double> values[] = {{"x" + before, double(size)}};
  stiefel::ProgressLog(path, 5).write(7, 0.5, values);
  std::ifstream stream(path, std::ios::binary);
  const std::string after{std::istreambuf_iterator<char>(stream), {}};
  stiefel::ProgressReader reader(folder);
  reader.update();
  std::filesystem::remove_all(folder);
  if (!after.ends_with('\n')) std::abort();
  const std::size_t line = after.rfind('\n', after.size() - 2);
  const auto last = nlohmann::json::parse(after.substr(line == after.npos ? 0 : line + 1), nullptr, false);
  if (!last.is_object() || last["step"] != 7) std::abort();
  const std::size_t mark = line == 0 || line == after.npos ? after.npos : after.rfind('\n', line - 1) + 1;
  if (mark == after.npos || !before.starts_with(std::string_view(after).substr(0, mark))) std::abort();
  if (nlohmann::json::parse(after.substr(mark, line - mark))["resumed_after"] != 5) std::abort();
  if (after.size() - line < 60'000 && reader.latest().step != 7) std::abort();
  return 0;
}
