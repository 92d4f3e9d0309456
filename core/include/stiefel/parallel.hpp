/// Threads for the work that a map does once per step.
#pragma once

#include <algorithm>
#include <functional>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// Runs job(0) … job(count − 1), each once and in any order, on the run's threads where they are idle: in refresh,
/// materialise, finish and pullback of a map, and everywhere in a map while a batch is one slice (train.batch < 12).
/// Elsewhere, and within a job, the jobs run one after the other. No result may depend on which thread ran which job.
/// The exception of the lowest-numbered job is rethrown at the end; after an exception, jobs may be skipped.
STIEFEL_API void in_parallel(Index count, const std::function<void(Index)>& job);
/// The same for any function object, which is not copied.
template <class F> void in_parallel(Index count, const F& job) {
  in_parallel(count, std::function<void(Index)>(std::cref(job)));
}

/// work(first, width) for panels of 0 … columns − 1, in parallel: a product of large matrices has the same bits for any
/// number of threads if each panel of its columns is computed separately.
template <class F> void for_each_panel(Index columns, F&& work) {
  constexpr Index width = 256;
  in_parallel((columns + width - 1) / width, [&](Index i) { work(i * width, std::min(width, columns - i * width)); });
}

}  // namespace stiefel
