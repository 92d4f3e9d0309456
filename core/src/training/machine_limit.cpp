#include "training/machine_limit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stiefel/product.hpp>

#include "sdk/kernel/limit_kernel.hpp"

namespace stiefel {
namespace {

/// Selects SIMD targets; the destructor selects the previous one again.
class Target {
 public:
  ~Target() { select_product_target(before_); }
  void select(const char* name) { select_product_target(name); }

 private:
  std::string before_ = product_target();
};

/// Returns the SIMD targets with fused multiply-adds, best first, and the best one in any case.
std::vector<const char*> multiplying_targets() {
  std::vector<const char*> targets = product_targets();
  const char* best = targets.front();
  Target target;
  std::erase_if(targets, [&](const char* name) {
    target.select(name);
    return name != best && !limit_kernel().fused;
  });
  return targets;
}

/// Returns the size of the largest cache in bytes. It asks the C library, which knows only the caches of x86-64, and
/// /sys, which some containers lack.
Index largest_cache() {
  Index bytes = std::max(::sysconf(_SC_LEVEL2_CACHE_SIZE), ::sysconf(_SC_LEVEL3_CACHE_SIZE)), kilobytes = 0;
  for (int level = 0; level < 8; ++level)
    if (std::ifstream(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", level)) >> kilobytes)
      bytes = std::max(bytes, kilobytes << 10);
  return bytes;
}

/// Returns the length of each thread's three arrays, which together take four times the largest cache or more.
Index numbers_beyond_cache(int threads) {
  constexpr Index least = Index(256) << 20, step = 128;
  return std::max(least, 4 * largest_cache()) / Index(3 * sizeof(float)) / threads / step * step;
}

}  // namespace

std::vector<MachineLimit> measure_limits(int threads, double seconds) {
  Workers workers(threads);
  const std::vector<const char*> targets = multiplying_targets();
  const double share = seconds / double(targets.size() + 2);
  std::vector<float> sums(std::size_t(workers.threads()));  // keeps the loops from being optimized away
  std::vector<MachineLimit> limits;
  for (Target target; const char* name : targets) {
    constexpr Index repetitions = 1'000'000;
    target.select(name);
    const LimitKernel& kernel = limit_kernel();
    const double work = 2.0 * double(kernel.multiply_adds * repetitions);
    limits.push_back({"multiply-add", name, measure_rate(workers, work, share, [&](int thread) {
                        sums[std::size_t(thread)] = kernel.in_registers(repetitions);
                      })});
  }

  const Index size = numbers_beyond_cache(workers.threads());
  Matrix<float> a(size, workers.threads()), b(size, workers.threads()), c(size, workers.threads());
  a.setOnes(), b.setOnes(), c.setOnes();
  const LimitKernel& kernel = limit_kernel();
  const double bytes = double(size) * sizeof(float);
  limits.push_back({"read", product_target(), measure_rate(workers, bytes, share, [&](int thread) {
                      sums[std::size_t(thread)] = kernel.read(a.col(thread).data(), size);
                    })});
  limits.push_back({"triad", product_target(), measure_rate(workers, 3 * bytes, share, [&](int thread) {
                      kernel.triad(a.col(thread).data(), b.col(thread).data(), c.col(thread).data(), size);
                    })});
  return limits;
}

}  // namespace stiefel
