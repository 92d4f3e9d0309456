// `stiefel inspect RUN`: the parameters of a run's network, and its recurrent maps as matrices.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "config/load.hpp"
#include "training/inspect.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"
#include "cli/table_text.hpp"

namespace stiefel::cli {
namespace {

const char* name_of(Manifold manifold) {
  switch (manifold) {
    case Manifold::flat:
      return "";
    case Manifold::orthogonal:
      return "orthogonal";
    case Manifold::unitary:
      return "unitary";
  }
  return "";
}

std::vector<double> moduli_of(const Spectrum& spectrum) {
  std::vector<double> moduli;
  for (const auto& z : spectrum.eigenvalues) moduli.push_back(std::abs(z));
  return moduli;
}

/// Least, mean and largest value.
std::vector<std::string> range_of(const std::vector<double>& values) {
  if (values.empty()) return {"-", "-", "-"};
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
  return {fmt::format("{:.6g}", *least), fmt::format("{:.6g}", mean), fmt::format("{:.6g}", *largest)};
}

void print_tables(const Inspection& found) {
  fmt::print("step {}, {}\n\n", found.step, counted(found.parameters, "parameter"));
  TextTable blocks{
      {"block", "shape", "norm", "min", "mean", "max", "manifold"}, {false, true, true, true, true, true, false}, {}};
  for (const InspectedBlock& block : found.blocks)
    blocks.rows.push_back({block.name, fmt::format("{} × {}", block.rows, block.cols),
                           fmt::format("{:.6g}", block.norm), fmt::format("{:.6g}", block.least),
                           fmt::format("{:.6g}", block.mean), fmt::format("{:.6g}", block.largest),
                           name_of(block.manifold)});
  fmt::print("{}\n", aligned(blocks));
  TextTable maps{
      {"map", "plugin", "W", "singular min", "mean", "max", "|eigenvalue| min", "mean", "max", "|W*W - I|", "max"},
      {false, false, true, true, true, true, true, true, true, true, true},
      {}};
  for (const InspectedMap& map : found.maps) {
    const Index parts = map.complex ? 2 : 1;
    std::vector<std::string> row = {
        map.name, map.plugin,
        fmt::format("{} × {}{}", map.W.rows() / parts, map.W.cols() / parts, map.complex ? " complex" : "")};
    for (const auto& values : {map.spectrum.singular_values, moduli_of(map.spectrum)})
      for (const std::string& text : range_of(values)) row.push_back(text);
    row.push_back(fmt::format("{:.3g}", map.defect.frobenius));
    row.push_back(fmt::format("{:.3g}", map.defect.largest));
    maps.rows.push_back(std::move(row));
  }
  fmt::print("{}", aligned(maps));
}

void print_json(const Inspection& found) {
  using Json = nlohmann::ordered_json;
  Json document{
      {"step", found.step}, {"parameters", found.parameters}, {"blocks", Json::array()}, {"maps", Json::array()}};
  for (const InspectedBlock& block : found.blocks)
    document["blocks"].push_back({{"name", block.name},
                                  {"shape", {block.rows, block.cols}},
                                  {"norm", block.norm},
                                  {"min", block.least},
                                  {"mean", block.mean},
                                  {"max", block.largest},
                                  {"manifold", name_of(block.manifold)}});
  for (const InspectedMap& map : found.maps) {
    Json eigenvalues = Json::array();
    for (const auto& z : map.spectrum.eigenvalues) eigenvalues.push_back({z.real(), z.imag()});
    document["maps"].push_back({{"name", map.name},
                                {"plugin", map.plugin},
                                {"complex", map.complex},
                                {"singular_values", map.spectrum.singular_values},
                                {"eigenvalues", eigenvalues},
                                {"defect_fro", map.defect.frobenius},
                                {"defect_max", map.defect.largest}});
  }
  fmt::print("{}\n", json_text(document, 2));
}

/// The bytes of a NumPy file for a matrix given row by row. With `complex`, an entry is a pair of numbers.
std::string npy(std::span<const double> values, Index rows, Index cols, bool complex) {
  constexpr std::size_t before = 10;  // "\x93NUMPY", version 1.0, length; the numbers begin at a multiple of 64 bytes
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                 complex ? "<c16" : "<f8", rows, cols);
  text.append(63 - (before + text.size()) % 64, ' ') += '\n';
  std::string file("\x93NUMPY\x01\0", 8);
  file.append({char(text.size() & 0xFF), char(text.size() >> 8)}).append(text);
  return file.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

/// The NumPy file of W. For a complex map, that is A + iB, which its real form consists of.
std::string npy_of(const InspectedMap& map) {
  if (!map.complex) {
    const Matrix<double> rows = map.W.transpose();
    return npy({rows.data(), std::size_t(rows.size())}, map.W.rows(), map.W.cols(), false);
  }
  const Index rows = map.W.rows() / 2, cols = map.W.cols() / 2;
  std::vector<double> numbers;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) numbers.insert(numbers.end(), {map.W(i, j), map.W(rows + i, j)});
  return npy(numbers, rows, cols, true);
}

/// Writes W to a file. If there are several maps, each goes to a file whose name includes the map's.
void save_arrays(const Inspection& found, const std::filesystem::path& file) {
  if (found.maps.empty())
    throw Error(fmt::format("the network has no recurrent map: nothing is written to {}", file.string()));
  for (const InspectedMap& map : found.maps) {
    std::filesystem::path target = file;
    if (found.maps.size() > 1)
      target.replace_filename(fmt::format("{}_{}{}", file.stem().string(), map.name, file.extension().string()));
    replace_file(target, npy_of(map));
    say("W of {}: {}\n", map.name, target.string());
  }
}

}  // namespace

int inspect_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("inspect", words);
  const std::filesystem::path directory = run_folder(arguments, "name the folder of one run: stiefel inspect RUN");
  const std::filesystem::path network = chosen_network(directory, arguments), output = arguments.file("--output");
  OpenedRun run(directory, arguments);
  const Inspection found = inspect(run.loaded, run.registry, network);
  arguments.has("--json") ? print_json(found) : print_tables(found);
  if (!output.empty()) save_arrays(found, output);
  return int(Exit::done);
}

}  // namespace stiefel::cli
