/// The parts of the result file that are not tables: root attributes, /config, /provenance and /status.
#pragma once

#include <filesystem>

#include "record/hdf5.hpp"
#include "record/layout.hpp"

namespace stiefel {

class ResultReader;

void write_header(hdf5::Group& root, const RunHeader& header);
/// Reads what write_header() wrote, with all segments. Without `provenance`, reads only title, id, baseline, number of
/// parameters, resolved document, and names, kinds and checksums of plugins and data files.
RunHeader read_header(const ResultReader& file, bool provenance = true);
/// Rewrites what a process changes when it resumes a run: the rows of /provenance/segments, which may be more than
/// before, and the folders that relative paths start from.
void rewrite_provenance(const hdf5::Group& root, const RunHeader& header);
/// Writes the status to the root attributes, to /status and to the last row of /provenance/segments.
void write_status(hdf5::Group& root, std::int64_t committed_step, const Status& status);

/// Upper bound of the bytes that write_header adds.
std::uint64_t header_bytes(const RunHeader& header);

/// Seconds since 1970-01-01T00:00:00Z.
double seconds_since_1970();
/// "2024-05-17T09:30:00Z"
std::string iso_8601(double seconds_since_1970);

}  // namespace stiefel
