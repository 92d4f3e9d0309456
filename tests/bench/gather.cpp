// What gathering slice sums costs against a plain all-reduce: mpirun -n 2 gather_bench. A line for each size of a
// slice's sums: numbers, microseconds of gathering 8 slices and adding them in their order, of all_reduce of the ranks'
// own sums, and the ratio.
#include <fmt/format.h>

#include <boost/mpi.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "engine/ranks.hpp"

namespace {

double median_microseconds(int repeats, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[std::size_t(repeats) / 2];
}

void add(std::vector<float>& sum, const float* part) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

}  // namespace

int main() {
  constexpr int slices = 8;
  const auto ranks = stiefel::mpi_ranks();
  const boost::mpi::communicator world;
  const int own_slices = slices / ranks->count();
  for (const std::size_t size : {1'000u, 10'000u, 100'000u, 1'000'000u}) {
    const std::vector<float> slice(size, float(ranks->rank() + 1));
    std::vector<float> own(size * std::size_t(own_slices)), all(size * std::size_t(own_slices * ranks->count())),
        sum(size), total(size);
    for (int s = 0; s < own_slices; ++s)
      std::copy(slice.begin(), slice.end(), own.begin() + std::ptrdiff_t(std::size_t(s) * size));
    const std::vector<int> sizes(std::size_t(ranks->count()), int(own.size() * sizeof(float)));
    const auto gather = [&] {
      ranks->gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), sizes);
      std::fill(total.begin(), total.end(), 0.0F);
      for (std::size_t s = 0; s < all.size() / size; ++s) add(total, all.data() + s * size);
    };
    const auto reduce = [&] {
      std::fill(sum.begin(), sum.end(), 0.0F);
      for (int s = 0; s < own_slices; ++s) add(sum, own.data() + std::size_t(s) * size);
      boost::mpi::all_reduce(world, sum.data(), int(size), total.data(), std::plus<float>());
    };
    const int repeats = size < 500'000 ? 201 : 51;
    ranks->largest(0);
    const double gathered = median_microseconds(repeats, gather), reduced = median_microseconds(repeats, reduce);
    if (ranks->first()) fmt::print("{:8} {:10.1f} {:10.1f} {:6.2f}\n", size, gathered, reduced, gathered / reduced);
  }
}
