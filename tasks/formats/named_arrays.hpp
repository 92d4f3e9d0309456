/// Files of arrays with names: NumPy's .npz files, and HDF5 files, whose names may have groups, as group/name.
#pragma once

#include <memory>
#include <string>

#include <stiefel/npy.hpp>

namespace stiefel {

class NamedArrays {
 public:
  virtual ~NamedArrays() = default;
  virtual bool has(const std::string& name) const = 0;
  /// Refuses a name that the file does not have.
  virtual Npy read(const std::string& name) const = 0;
};

/// Whether the name is that of such a file: .npz, .h5 or .hdf5.
bool has_named_arrays(const std::string& file);
/// Throws Error(Exit::data) that names the file, and the array if it is that of one; so do the functions above.
std::unique_ptr<NamedArrays> open_named_arrays(const std::string& path);

}  // namespace stiefel
