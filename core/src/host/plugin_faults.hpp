// Faults in what a plugin returns, as the rest of a sentence; empty if there are none. Runs refuse faulty plugins,
// `stiefel check` reports them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/cell.hpp>
#include <stiefel/parametrisation.hpp>
#include <stiefel/task.hpp>

namespace stiefel {

/// Throws Error (Exit::plugin) that `what`, such as "cell", has this fault. Does nothing if `fault` is empty.
STIEFEL_API void refuse_fault(std::string_view what, std::string_view name, const std::filesystem::path& file,
                              const std::string& fault);

/// Whether the name is [a-z0-9_]+, as names in files and in YAML must be.
STIEFEL_API bool plain_name(std::string_view name);
STIEFEL_API std::string block_fault(const BlockSpec& block);
/// A fault in the row numbers that a cell states.
template <class S> STIEFEL_API std::string rows_fault(const Cell<S>& cell);
STIEFEL_API std::string maps_fault(const std::vector<MapSpec>& maps);
STIEFEL_API std::string shape_fault(const TaskShape& shape);
STIEFEL_API std::string metrics_fault(const std::vector<Metric>& metrics);
STIEFEL_API std::string form_fault(const DataForm& form, const TaskShape& shape);
/// A fault that could make a pass read or write out of bounds, or an invalid weight.
template <class S> STIEFEL_API std::string batch_fault(const Batch<S>& batch, const TaskShape& shape);
/// The first input, or target with a weight, that is NaN or infinite, as "input 0 at step 3 of sequence 5 is nan".
/// Empty if there is none.
template <class S> STIEFEL_API std::string broken_number(const Batch<S>& batch, const TaskShape& shape);

}  // namespace stiefel
