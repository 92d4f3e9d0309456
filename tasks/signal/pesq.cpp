// Runs the program that STIEFEL_PESQ names on two files in a temporary folder.
#include "tasks/signal/pesq.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <stiefel/error.hpp>
#include "tasks/formats/audio.hpp"
#include "tasks/formats/data_path.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "stiefel-pesq-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw Error("cannot create a folder for PESQ in " + fs::temp_directory_path().string(), Exit::exhausted);
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string write(const char* name, std::span<const double> samples, std::int64_t rate) const {
    std::ofstream(path / name, std::ios::binary) << wav_of(samples, int(rate));
    return (path / name).string();
  }
};

std::string in_quotes(const std::string& word) { return "'" + within_quotes(word) + "'"; }

std::optional<double> last_number(const std::string& text) {
  const char* digits = "0123456789";
  const std::size_t last = text.find_last_of(digits);
  if (last == std::string::npos) return std::nullopt;
  std::size_t first = text.find_last_not_of("0123456789.", last) + 1;
  if (first > 0 && text[first - 1] == '-') --first;
  return std::stod(text.substr(text.find_first_of("-0123456789", first)));
}

/// What STIEFEL_PESQ names: a file where it has a slash, else a program that the shell finds; empty: none.
std::string pesq_program() {
  const char* name = std::getenv("STIEFEL_PESQ");
  const std::string program = name ? name : "";
  return program.find('/') == program.npos ? program : fs::absolute(program).string();
}

}  // namespace

void check_pesq() {
  const std::string program = pesq_program();
  if (program.find('/') != program.npos && ::access(program.c_str(), X_OK) != 0)
    throw Error(fmt::format("STIEFEL_PESQ names {}, which cannot be run; correct or unset the variable", program),
                Exit::data);
}

std::optional<double> pesq(std::span<const double> clean, std::span<const double> processed, std::int64_t rate) {
  const std::string program = pesq_program();
  if (program.empty()) return std::nullopt;
  const Folder folder;
  const std::string command =
      fmt::format("{} +{} {} {}", in_quotes(program), rate, in_quotes(folder.write("clean.wav", clean, rate)),
                  in_quotes(folder.write("processed.wav", processed, rate)));
  std::FILE* output = popen(("cd " + in_quotes(folder.path.string()) + " && " + command).c_str(), "r");
  std::string text;
  std::array<char, 4096> piece;
  while (output)
    if (const std::size_t got = std::fread(piece.data(), 1, piece.size(), output); got > 0)
      text.append(piece.data(), got);
    else
      break;
  const int status = output ? pclose(output) : -1;
  const std::optional<double> score = last_number(text);
  if (status != 0 || !score)
    throw Error(fmt::format("STIEFEL_PESQ: {} {}; run it by hand, or unset the variable", command,
                            status != 0 ? "failed" : "printed no number"),
                Exit::data);
  return score;
}

}  // namespace stiefel
