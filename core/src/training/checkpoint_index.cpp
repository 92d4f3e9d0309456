// The reader accepts only what the writer writes, so that no entry can name a file elsewhere.
#include "training/checkpoint_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include <stiefel/error.hpp>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "base/file_error.hpp"
#include "base/json_text.hpp"
#include "base/sha256.hpp"
#include "record/run_folder.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw Error(
      fmt::format(
          "{} {}: cannot tell which checkpoints are intact. Restore it, or move the run's folder away and run again",
          path.string(), why),
      Exit::damaged);
}

/// Returns a non-negative integer of at most 63 bits; throws Error (Exit::damaged) for anything else.
std::uint64_t whole_number_of(const nlohmann::json& item, const char* key, const fs::path& path) {
  const nlohmann::json& value = item.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t(INT64_MAX))
    refuse(path, fmt::format("is damaged (its {} is not a valid number)", key));
  return value.get<std::uint64_t>();
}

constexpr std::array replaced_files = {"best.h5", "last.h5", "diverged.h5", "results.h5", "config.yaml"};

ListedFile entry_of(const nlohmann::json& item, const fs::path& path) {
  ListedFile entry{item.at("file"), 0, whole_number_of(item, "bytes", path), item.at("sha256")};
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (entry.sum.size() != 64 || !std::ranges::all_of(entry.sum, digit))
    refuse(path, "is damaged (a sum is not a SHA-256)");
  return entry;
}

ListedFile checkpoint_of(const nlohmann::json& item, const fs::path& path) {
  ListedFile entry = entry_of(item, path);
  entry.step = Index(whole_number_of(item, "step", path));
  if (entry.file != step_file(entry.step)) refuse(path, "is damaged (it names a file that is not a checkpoint)");
  return entry;
}

ListedFile entry_for(const std::string& file, const fs::path& content) {
  return {file, 0, fs::file_size(content), sha256_of_file(content)};
}

nlohmann::ordered_json json_of(const ListedFile& entry) {
  return {{"file", entry.file}, {"bytes", entry.bytes}, {"sha256", entry.sum}};
}

}  // namespace

bool ListedFile::is_content_of(const fs::path& path) const {
  return fs::file_size(path) == bytes && sha256_of_file(path) == sum;
}

std::vector<ListedFile> CheckpointIndex::entries_of(const std::string& file) const {
  std::vector<ListedFile> found;
  for (const auto* list : {&checkpoints, &files})
    std::ranges::copy_if(*list, std::back_inserter(found), [&](const ListedFile& entry) { return entry.file == file; });
  return found;
}

std::string step_file(Index step) { return fmt::format("step_{:08}.h5", step); }

fs::path listed_path(const fs::path& run, const std::string& file) {
  return file == "results.h5" || file == "config.yaml" ? run / file : RunFolder{run}.checkpoints() / file;
}

CheckpointIndex parse_checkpoint_index(std::string_view text, const fs::path& path) {
  const nlohmann::json document = parse_json_or_discard(text);
  if (document.is_discarded()) refuse(path, "is not a JSON document");
  try {
    const std::uint64_t version = whole_number_of(document, "format_version", path);
    refuse_other_format(path, double(version));
    CheckpointIndex index;
    if (!document.at("checkpoints").is_array()) refuse(path, "is damaged (checkpoints is not a list)");
    for (const auto& item : document["checkpoints"]) {
      if (const ListedFile entry = checkpoint_of(item, path);
          index.checkpoints.empty() || index.checkpoints.back().step < entry.step)
        index.checkpoints.push_back(entry);
      else
        refuse(path, "is damaged (its steps do not increase)");
    }
    if (document.contains("started_in")) {
      index.working_directory = document["started_in"].at("working_directory");
      index.data_directory = document["started_in"].at("data_directory");
    }
    if (version == 1) return index;
    if (!document.at("files").is_array()) refuse(path, "is damaged (files is not a list)");
    for (const auto& item : document["files"]) {
      index.files.push_back(entry_of(item, path));
      if (std::ranges::find(replaced_files, index.files.back().file) == replaced_files.end())
        refuse(path, "is damaged (it names a file that is not a network)");
    }
    return index;
  } catch (const nlohmann::json::exception& error) {
    refuse(path, fmt::format("is damaged ({})", error.what()));
  }
}

bool has_checkpoint_index(const fs::path& run) { return fs::exists(RunFolder{run}.index()); }

CheckpointIndex read_checkpoint_index(const fs::path& run) {
  const std::optional<std::string> text = content_if_there(RunFolder{run}.index());
  return text ? parse_checkpoint_index(*text, RunFolder{run}.index()) : CheckpointIndex();
}

void write_checkpoint_index(const fs::path& run, const CheckpointIndex& index) {
  nlohmann::ordered_json document{{"format_version", format_version},
                                  {"checkpoints", nlohmann::ordered_json::array()},
                                  {"files", nlohmann::ordered_json::array()}};
  for (const ListedFile& entry : index.checkpoints) {
    document["checkpoints"].push_back(json_of(entry));
    document["checkpoints"].back()["step"] = entry.step;
  }
  for (const ListedFile& entry : index.files) document["files"].push_back(json_of(entry));
  if (!index.working_directory.empty())
    document["started_in"] = {{"working_directory", index.working_directory}, {"data_directory", index.data_directory}};
  fs::create_directories(RunFolder{run}.index().parent_path());
  replace_file(RunFolder{run}.index(), json_text(document, 1) + "\n");
}

void list_file(const fs::path& run, const std::string& file, const fs::path& content) {
  CheckpointIndex index = read_checkpoint_index(run);
  const std::vector<ListedFile> before = index.entries_of(file);
  std::erase_if(index.files, [&](const ListedFile& entry) { return entry.file == file; });
  if (const fs::path present = listed_path(run, file); !before.empty())
    index.files.push_back(before.back());
  else if (fs::is_regular_file(present) && present != content)  // format 1 did not list it
    index.files.push_back(entry_for(file, present));
  index.files.push_back(entry_for(file, content));
  write_checkpoint_index(run, index);
}

void settle_files(const fs::path& run) {
  CheckpointIndex index = read_checkpoint_index(run);
  const auto listed = index.files.size();
  for (const char* file : replaced_files) {
    const fs::path path = listed_path(run, file);
    if (index.entries_of(file).size() < 2 || !fs::is_regular_file(path)) continue;
    const auto present = std::ranges::find_if(
        index.files, [&](const ListedFile& entry) { return entry.file == file && entry.is_content_of(path); });
    if (present == index.files.end()) continue;
    const ListedFile kept = *present;
    std::erase_if(index.files, [&](const ListedFile& entry) { return entry.file == file && entry != kept; });
  }
  if (index.files.size() != listed) write_checkpoint_index(run, index);
}

}  // namespace stiefel
