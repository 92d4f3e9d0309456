// What a task reports at the end of a run: means of quantities, and its own files.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <stiefel/task.hpp>

namespace stiefel {

class STIEFEL_API RunOutcome final : public Outcome {
 public:
  /// Files go to `folder`, which is created with the first one. An empty path discards them.
  explicit RunOutcome(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Adds to a weighted mean. Throws Error (Exit::plugin) if the name is not [a-z0-9_]+.
  void scalar(const std::string& name, double value, double weight) override;
  /// Writes a file into the folder. Throws Error (Exit::plugin) if the name is not a plain file name.
  void file(const std::string& name, std::string_view bytes) override;
  const std::map<std::string, Ratio>& quantities() const { return quantities_; }

 private:
  std::filesystem::path folder_;
  std::map<std::string, Ratio> quantities_;
};

}  // namespace stiefel
