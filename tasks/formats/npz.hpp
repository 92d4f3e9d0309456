/// NumPy's .npz files: ZIP archives of .npy files, stored or deflated, each with the name of an array.
#pragma once

#include <string>
#include <vector>

#include "tasks/formats/named_arrays.hpp"

namespace stiefel {

/// The arrays of a file of at most 4 GB.
class NpzFile : public NamedArrays {
 public:
  explicit NpzFile(const std::string& path);

  bool has(const std::string& name) const override;
  Npy read(const std::string& name) const override;

 private:
  struct Entry {
    std::string name;
    std::size_t method, compressed, size, header;  // header: where its own one begins
  };
  [[noreturn]] void refuse(const std::string& what) const;
  std::size_t number(std::size_t place, std::size_t bytes) const;

  std::string path_, bytes_;
  std::vector<Entry> entries_;
};

}  // namespace stiefel
