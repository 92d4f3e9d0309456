// Limits of memory and cores, of control groups that are files in a temporary folder.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "base/machine.hpp"
#include "engine/workers.hpp"
#include "scratch.hpp"

using namespace stiefel;
namespace fs = std::filesystem;

namespace {

/// A root folder with /proc and /sys.
struct Root : scratch::Folder {
  void write(const fs::path& name, const std::string& text) const { scratch::write(path / name, text); }
};

const std::string second = "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string first =
    "31 30 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

}  // namespace

TEST_CASE("without control groups the machine's memory counts") {
  const Root root;
  const MemoryLimit limit = memory_limit(root.path);
  CHECK(limit.bytes == double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)));
  CHECK(limit.source == "this machine has");
}

TEST_CASE("the lowest limit of a group and those around it counts: version 2") {
  const Root root;
  root.write("proc/self/mountinfo", second);
  root.write("proc/self/cgroup", "0::/user/job/step\n");
  root.write("sys/fs/cgroup/user/job/step/memory.max", "max\n");
  root.write("sys/fs/cgroup/user/job/memory.max", "100000000\n");
  root.write("sys/fs/cgroup/user/memory.max", "200000000\n");
  CHECK(memory_limit(root.path).bytes == 1e8);
  CHECK(memory_limit(root.path).source == "the control group /user/job allows");
  root.write("sys/fs/cgroup/user/job/step/memory.max", "50000000\n");
  CHECK(memory_limit(root.path).bytes == 5e7);
  root.write("sys/fs/cgroup/user/memory.max", "1000000\n");
  CHECK(memory_limit(root.path).source == "the control group /user allows");
}

TEST_CASE("the lowest limit of a group and those around it counts: version 1") {
  const Root root;
  root.write("proc/self/mountinfo", first);
  root.write("proc/self/cgroup", "4:cpu,cpuacct:/slurm/job\n5:memory:/slurm/job\n0::/\n");
  root.write("sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "300000000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(memory_limit(root.path).bytes == 3e8);
  root.write("sys/fs/cgroup/cpu,cpuacct/slurm/job/cpu.cfs_quota_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/slurm/job/cpu.cfs_period_us", "100000\n");
  CHECK(usable_cores(root.path) == 1);
}

TEST_CASE("in a container the mounted group is the container's, whatever its path outside is") {
  const Root root;
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "70000000\n");
  root.write("proc/self/cgroup", "5:memory:/docker/abc\n");
  for (const char* mounted : {"/docker/abc", "/", "/docker/ab"}) {
    root.write("proc/self/mountinfo",
               fmt::format("31 30 0:26 {} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", mounted));
    CHECK(memory_limit(root.path).bytes == 7e7);
  }
}

TEST_CASE("damaged and missing files of control groups are no limits") {
  const Root root;
  root.write("proc/self/mountinfo", second + "\nx - \n- cgroup2\n1 2 3 4 5 6 7 -\n");
  root.write("proc/self/cgroup", "0::/job\nnonsense\n:\n");
  for (const char* text : {"", "many", "-1", "max 100000", "0x10"}) {
    root.write("sys/fs/cgroup/job/memory.max", text);
    root.write("sys/fs/cgroup/job/cpu.max", text);
    CHECK(memory_limit(root.path).source == "this machine has");
    CHECK(usable_cores(root.path) >= 1);
  }
}

// Sanitizers map terabytes.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a limit of the address space counts") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit low{rlim_t(sysconf(_SC_PHYS_PAGES)) * rlim_t(sysconf(_SC_PAGESIZE)) / 2, before.rlim_max};
  if (before.rlim_cur != RLIM_INFINITY || setrlimit(RLIMIT_AS, &low) != 0) {
    MESSAGE("not tested: the address space is limited already");
    return;
  }
  const MemoryLimit limit = memory_limit(Root().path), of_three = memory_limit(Root().path, 3);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(limit.bytes == double(low.rlim_cur));
  CHECK(limit.of_process);
  CHECK(of_three.source == "this machine has");  // which has less than three times the limit
  CHECK(!of_three.of_process);
  CHECK(limit.source == "ulimit -v allows");
}
#endif

TEST_CASE("cores of the affinity, or of a quota, which is rounded up") {
  const Root root;
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const int all = CPU_COUNT(&before);
  CHECK(usable_cores(root.path) == all);

  root.write("proc/self/mountinfo", second);
  root.write("proc/self/cgroup", "0::/job\n");
  root.write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  CHECK(usable_cores(root.path) == all);
  root.write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  CHECK(usable_cores(root.path) == std::min(all, 2));
  root.write("sys/fs/cgroup/job/cpu.max", "5000 100000\n");
  CHECK(usable_cores(root.path) == 1);

  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(usable_cores("/nowhere") == 1);
  CHECK(Workers(0).threads() == 1);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("bytes as text") {
  CHECK(bytes_text(37e6) == "37 MB");
  CHECK(bytes_text(8.62e9) == "8.6 GB");
  CHECK(bytes_text(4.2e12) == "4200 GB");
  CHECK(bytes_text(1.5e6) == "1.5 MB");
}
