// One step of the optimizer, for training, the dry run and `bench step`.
#pragma once

#include <cmath>
#include <utility>

#include "training/session.hpp"
#include "training/stopwatch.hpp"

namespace stiefel {

struct StepResult {
  PassResult pass;  // over all batches of the step
  UpdateNorms norms;
};

/// Takes step `number`: refreshes the maps, passes over the train.accumulate batches next(0), next(1), … until a loss
/// is not finite, and moves the parameters. `norms`: also computes the norms at each time step. `watch` measures each
/// phase; next() counts as data.
template <class S, class Next>
StepResult take_step(Session<S>& session, Index number, bool norms, Stopwatch& watch, Next&& next) {
  StepResult result;
  PassResult& pass = result.pass;
  watch.time(Phase::param_map, [&] { session.refresh(number); });
  for (Index k = 0; k < session.experiment.train.accumulate && (k == 0 || std::isfinite(pass.loss)); ++k) {
    const Batch<S>& batch = watch.time(Phase::data, [&]() -> const Batch<S>& { return next(k); });
    PassRequest request = session.request(number, k);
    request.norms = norms;
    pass = watch.time(Phase::passes, [&] {
      return k == 0 ? session.network->train(batch, session.workers, request)
                    : session.network->train_more(batch, session.workers, request, pass);
    });
  }
  result.norms = watch.time(Phase::optimizer, [&] { return session.update(number, pass); });
  return result;
}

}  // namespace stiefel
