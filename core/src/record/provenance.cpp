// Where a result came from: facts of the build, and facts of the machine from files of the kernel.
#include "record/provenance.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <boost/version.hpp>
#include <cstdlib>
#include <Eigen/Core>
#include <fstream>
#include <initializer_list>
#include <thread>

#include "base/printable.hpp"
#include "record/build_info.hpp"
#include "record/hdf5.hpp"
#include "sdk/blas.hpp"

namespace stiefel {
namespace {

constexpr const char* unknown = "unknown";

/// The value of the first line "key<separator>value", without quotes.
std::string value_in_file(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t cut = line.find(separator);
    if (cut == line.npos) continue;
    std::string name = line.substr(0, cut), value = line.substr(cut + 1);
    name.erase(name.find_last_not_of(" \t") + 1);
    if (name != key) continue;
    const std::size_t first = value.find_first_not_of(" \t\""), last = value.find_last_not_of(" \t\"");
    if (first != value.npos) return value.substr(first, last - first + 1);
  }
  return unknown;
}

/// The value of the first of these keys that /proc/cpuinfo has: each architecture names them differently.
std::string of_cpu(std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const std::string value = value_in_file("/proc/cpuinfo", key, ':'); value != unknown) return value;
  return unknown;
}

/// The model of the CPU. AArch64 has numbers instead of a name, except on boards that state a model.
std::string cpu_model() {
  const std::string name = of_cpu({"model name", "Model"}), part = of_cpu({"CPU part"});
  if (name != unknown || part == unknown) return name;
  return fmt::format("CPU implementer {}, part {}", of_cpu({"CPU implementer"}), part);
}

/// The SLURM job and its place in a job array; "none" outside SLURM.
std::string slurm_job() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const std::string job = variable("SLURM_JOB_ID"), array = variable("SLURM_ARRAY_JOB_ID"),
                    task = variable("SLURM_ARRAY_TASK_ID");
  if (job.empty()) return "none";
  return array.empty() ? job : fmt::format("{} ({}_{})", job, array, task);
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

}  // namespace

std::string host_name() {
  utsname system;
  return uname(&system) == 0 ? system.nodename : "unknown";
}

std::vector<std::pair<std::string, std::string>> gather_provenance(const ProvenanceRequest& request) {
  utsname system{};
  const bool named = uname(&system) == 0;
  return {
      {"git_commit", build_info.git_commit},
      {"git_dirty", build_info.git_dirty},
      {"git_diff_sha256", build_info.git_diff_sha256},
      {"version", build_info.version},
      {"compiler", compiler()},
      {"cxx_flags", build_info.cxx_flags},
      {"eigen_version", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
      {"eigen_simd", Eigen::SimdInstructionSetsInUse()},
      {"eigen_max_align_bytes", std::to_string(EIGEN_MAX_ALIGN_BYTES)},
      {"simd_target", request.simd_target},
      {"blas", blas_configuration()},
      {"blas_core", blas_core()},
      {"hdf5_version", hdf5::library_version()},
      {"yaml_version", build_info.yaml_version},
      {"boost_version", BOOST_LIB_VERSION},
      {"os", value_in_file("/etc/os-release", "PRETTY_NAME", '=')},
      {"kernel", named ? fmt::format("{} {}", system.sysname, system.release) : "unknown"},
      {"libc", fmt::format("glibc {}", gnu_get_libc_version())},
      {"cpu_model", cpu_model()},
      {"cpu_flags", of_cpu({"flags", "Features"})},
      {"cpu_count", std::to_string(std::thread::hardware_concurrency())},
      {"hostname", host_name()},
      {"threads", std::to_string(request.threads)},
      {"mpi_ranks", std::to_string(request.mpi_ranks)},
      {"slurm_job", slurm_job()},
      {"command_line", shell_line(request.command_line)},
  };
}

std::int64_t current_rss_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  return file >> total >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? std::int64_t(usage.ru_maxrss) * 1024 : 0;
}

double processor_seconds() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace stiefel
