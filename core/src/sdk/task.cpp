// What every task shares: batches, the shuffled order of a data set, and the defaults of the role.
#include <stiefel/task.hpp>

#include <algorithm>
#include <array>
#include <mutex>

#include "sdk/require.hpp"

namespace stiefel {

const char* name_of(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    default:
      return "test";
  }
}

const char* name_of(DataForm::Output output) {
  switch (output) {
    case DataForm::Output::softmax:
      return "softmax";
    case DataForm::Output::sigmoid:
      return "sigmoid";
    default:
      return "identity";
  }
}

template <class S> void Batch<S>::resize(const TaskShape& shape, Index sequences, Index steps) {
  require(sequences >= 0 && steps >= 0, "a batch cannot have {} sequences of {} steps", sequences, steps);
  sequences_ = sequences;
  steps_ = steps;
  every_ = shape.readout == ReadoutKind::every;
  const auto columns = static_cast<std::size_t>(sequences * steps);
  const auto outputs = every_ ? columns : static_cast<std::size_t>(sequences);
  const auto rows = [](bool wanted, Index size) { return wanted ? size : 0; };
  input_rows_ = rows(shape.input == InputKind::dense, shape.input_size);
  target_rows_ = rows(!shape.labels, shape.output_size);
  lengths_.assign(static_cast<std::size_t>(sequences), steps);
  inputs_.assign(static_cast<std::size_t>(input_rows_) * columns, S(0));
  symbols_.assign(shape.input == InputKind::symbols ? columns : 0, 0);
  targets_.assign(static_cast<std::size_t>(target_rows_) * outputs, S(0));
  labels_.assign(shape.labels ? outputs : 0, 0);
  weights_.assign(outputs, S(1));
}

template <class S> void Batch<S>::no_place(Index t, Index b, bool has, const char* what) const {
  require(has, "the batch has no {}s: shape() says otherwise", what);
  require(false, "there is no {} of step {} of sequence {} in a batch of {} sequences of {} steps", what, t, b,
          sequences_, steps_);
  __builtin_unreachable();
}

template <class S> Task<S>::~Task() = default;
template <class S> std::vector<Metric> Task<S>::metrics() const { return {}; }
template <class S> void Task<S>::measure(CMat<S>, const Targets<S>&, std::span<Ratio>) const {}
template <class S> double Task<S>::baseline() const { return std::numeric_limits<double>::quiet_NaN(); }
template <class S> void Task<S>::trivial(Index, std::span<S> output) const {
  std::fill(output.begin(), output.end(), S(0));
}
template <class S> std::vector<DataFile> Task<S>::files() const { return {}; }
template <class S> bool Task<S>::reports() const { return false; }
template <class S> void Task<S>::report(Index, const Batch<S>&, CMat<S>, Outcome&) const {}
template <class S> std::vector<std::string> Task<S>::alphabet() const { return {}; }
template <class S> DataForm Task<S>::form() const {
  DataForm form;
  if (shape().labels) form.output = DataForm::Output::softmax;
  form.outputs = alphabet();
  return form;
}

template <class S> std::vector<Baseline> Task<S>::baselines() const { return {}; }
template <class S> std::vector<Remark> Task<S>::remarks() const { return {}; }
template <class S> std::string Task<S>::summary() const { return {}; }

template <class S> SequenceReader<S>::~SequenceReader() = default;
template <class S> std::string SequenceReader<S>::name() const { return {}; }

Outcome::~Outcome() = default;

// Batches that are prepared ahead straddle two passes at most: an order is kept for the last even and the last odd one.
struct Shuffle::Order {
  struct Pass {
    std::uint64_t number = ~std::uint64_t(0);
    std::vector<std::int64_t> items;
  };
  std::mutex mutex;
  std::array<Pass, 2> passes;
};

Shuffle::Shuffle(Index size, std::uint64_t seed) : size_(size), seed_(seed), order_(std::make_unique<Order>()) {
  require(size > 0, "a data set of {} items cannot be shuffled", size);
}
Shuffle::~Shuffle() = default;

std::int64_t Shuffle::item(std::uint64_t running) const {
  const std::uint64_t number = running / static_cast<std::uint64_t>(size_),
                      place = running % static_cast<std::uint64_t>(size_);
  const std::lock_guard lock(order_->mutex);
  Order::Pass& pass = order_->passes[number % 2];
  if (pass.number != number) {
    pass.items = Rng(seed_, "shuffle", number).permutation(size_);
    pass.number = number;
  }
  return pass.items[place];
}

template class Batch<float>;
template class Batch<double>;
template class SequenceReader<float>;
template class SequenceReader<double>;
template class Task<float>;
template class Task<double>;

}  // namespace stiefel
