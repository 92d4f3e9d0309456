// Compares the bits of two runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// Lists what differs between the runs in two folders: datasets of results.h5 and of the networks checkpoints/best.h5
/// and last.h5, as "results.h5 /steps/loss". Times, memory and provenance are not compared. Throws Error
/// (Exit::damaged) if a file cannot be read.
STIEFEL_API std::vector<std::string> differing(const std::filesystem::path& run, const std::filesystem::path& other);

}  // namespace stiefel
