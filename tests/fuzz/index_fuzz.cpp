// An index of checkpoints is refused, or it names files of the folder, the newest last.
#include <cstdlib>

#include <stiefel/error.hpp>

#include "training/checkpoint_index.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  try {
    const CheckpointIndex index = parse_checkpoint_index({reinterpret_cast<const char*>(data), size}, "f");
    const std::vector<ListedFile>& checkpoints = index.checkpoints;
    for (std::size_t i = 0; i < checkpoints.size(); ++i) {
      const std::string& file = checkpoints[i].file;
      if (!file.starts_with("step_") || file.find('/') != file.npos || checkpoints[i].sum.size() != 64) std::abort();
      if (i > 0 && checkpoints[i].step <= checkpoints[i - 1].step) std::abort();
    }
    for (const ListedFile& entry : index.files)
      if (entry.file.find('/') != entry.file.npos || entry.sum.size() != 64) std::abort();
  } catch (const Error& error) {
    if (error.code() != Exit::damaged) std::abort();
  }
  return 0;
}
