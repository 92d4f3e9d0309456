// The commands of the `stiefel` program, one file each. A command takes the words after its name and returns the exit
// code. Errors are thrown as stiefel::Error unless the command prints them itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "host/registry.hpp"

namespace stiefel::cli {

int validate_command(std::span<const std::string> arguments);
int describe_command(std::span<const std::string> arguments);
int schema_command(std::span<const std::string> arguments);
int completion_command(std::span<const std::string> arguments);
int check_command(std::span<const std::string> arguments);
int new_command(std::span<const std::string> arguments);
int bench_command(std::span<const std::string> arguments);
int list_command(std::span<const std::string> arguments);
int data_command(std::span<const std::string> arguments);
int run_command(std::span<const std::string> arguments);
int repeat_command(std::span<const std::string> words);
int report_command(std::span<const std::string> words);
int resume_command(std::span<const std::string> arguments);
int top_command(std::span<const std::string> arguments);
int compare_command(std::span<const std::string> words);
int diff_command(std::span<const std::string> words);
int export_command(std::span<const std::string> words);
int inspect_command(std::span<const std::string> words);
int analyse_command(std::span<const std::string> words);
int evaluate_command(std::span<const std::string> words);
int predict_command(std::span<const std::string> words);
int sample_command(std::span<const std::string> arguments);
int reproduce_command(std::span<const std::string> words);
int sweep_command(std::span<const std::string> arguments);
int worker_command(std::span<const std::string> arguments);
int slurm_command(std::span<const std::string> arguments);

/// What `stiefel describe` takes in addition to files.
std::vector<std::string> describable(const Registry& registry);

/// Prints the error that is being handled. Returns its exit code.
int tell_error();
/// The exit code of a command after its output has been flushed.
int written(int code);

}  // namespace stiefel::cli
