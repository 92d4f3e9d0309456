// Reading trusts nothing: anything that differs from what was written is refused, so that no entry names a file elsewhere.
#include "training/checkpoint_index.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stiefel/error.hpp>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "base/file_error.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

fs::path index_path(const fs::path& run) { return run / "checkpoints/index.json"; }

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw Error(fmt::format("{} {}: cannot tell which checkpoints are intact. Restore it, or move the run's folder away and run again",
                          path.string(), why),
              Exit::damaged);
}

/// A non-negative integer of at most 63 bits, or nothing.
std::uint64_t whole_number_of(const nlohmann::json& item, const char* key, const fs::path& path) {
  const nlohmann::json& value = item.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t(INT64_MAX))
    refuse(path, fmt::format("is damaged (its {} is not a valid number)", key));
  return value.get<std::uint64_t>();
}

CheckpointEntry entry_of(const nlohmann::json& item, const fs::path& path) {
  CheckpointEntry entry{Index(whole_number_of(item, "step", path)), whole_number_of(item, "bytes", path), item.at("sha256")};
  if (item.at("file").get<std::string>() != entry.file()) refuse(path, "is damaged (it names a file that is not a checkpoint)");
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (entry.sum.size() != 64 || !std::ranges::all_of(entry.sum, digit)) refuse(path, "is damaged (a sum is not a SHA-256)");
  return entry;
}

}  // namespace

std::string CheckpointEntry::file() const { return fmt::format("step_{:08}.h5", step); }

std::vector<CheckpointEntry> parse_checkpoint_index(std::string_view text, const fs::path& path) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) refuse(path, "is not a JSON document");
  try {
    refuse_later_format(path, double(whole_number_of(document, "format_version", path)));
    if (!document.at("checkpoints").is_array()) refuse(path, "is damaged (checkpoints is not a list)");
    std::vector<CheckpointEntry> entries;
    for (const auto& item : document["checkpoints"]) {
      entries.push_back(entry_of(item, path));
      if (entries.size() > 1 && entries[entries.size() - 2].step >= entries.back().step)
        refuse(path, "is damaged (its steps do not increase)");
    }
    return entries;
  } catch (const nlohmann::json::exception& error) {
    refuse(path, fmt::format("is damaged ({})", error.what()));
  }
}

bool has_checkpoint_index(const fs::path& run) { return fs::exists(index_path(run)); }

std::vector<CheckpointEntry> read_checkpoint_index(const fs::path& run) {
  const std::optional<std::string> text = content_if_there(index_path(run));
  return text ? parse_checkpoint_index(*text, index_path(run)) : std::vector<CheckpointEntry>();
}

void write_checkpoint_index(const fs::path& run, const std::vector<CheckpointEntry>& entries) {
  nlohmann::ordered_json document{{"format_version", format_version}, {"checkpoints", nlohmann::ordered_json::array()}};
  for (const CheckpointEntry& entry : entries)
    document["checkpoints"].push_back({{"file", entry.file()}, {"step", entry.step}, {"bytes", entry.bytes}, {"sha256", entry.sum}});
  fs::create_directories(index_path(run).parent_path());
  replace_file(index_path(run), document.dump(1) + "\n");
}

}  // namespace stiefel
