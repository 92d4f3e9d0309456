#include "engine/step_jacobian.hpp"

namespace stiefel {
namespace {

/// Takes the gradients of parameters, which nobody needs.
template <class S> class NoSink final : public GradientSink<S> {
 public:
  void map(Index, Index, CMat<S>, CMat<S>) override {}
  Blocks<S> blocks() override { return {}; }
};

}  // namespace

template <class S>
StepJacobian<S>::StepJacobian(const Model<S>& model, const Recurrence<S>& recurrence, CMat<S> saved, Index columns)
    : model_(model), recurrence_(recurrence), saved_(saved), columns_(columns) {
  const Cell<S>& cell = *recurrence.cell;
  copies_.resize(cell.saved_rows(), 2 * columns);
  delta_.resize(cell.delta_rows(), columns);
  scratch_.resize(std::size_t(cell.scratch(columns) + recurrence.maps->scratch(columns)));
}

template <class S> void StepJacobian<S>::pull_back(Index t, Matrix<S>& V) {
  const Cell<S>& cell = *recurrence_.cell;
  copies_.leftCols(columns_).colwise() = saved_.col(t);
  copies_.rightCols(columns_).colwise() = saved_.col(t + 1);
  Chunk<S> chunk{.first = t,
                 .steps = 1,
                 .columns = columns_,
                 .active = &columns_,
                 .saved = view(copies_),
                 .delta = view(delta_),
                 .dstate = view(V),
                 .dhidden = {},
                 .output_in_state = cell.output_in_state(),
                 .message_clip = 0};
  NoSink<S> sink;
  Scratch<S> scratch{std::span<S>(scratch_)};
  recurrence_.cell.call("backward", [&] {
    cell.backward(chunk, CMat<S>(nullptr, cell.output_rows(), 0, cell.output_rows()), *recurrence_.maps,
                  model_.part(recurrence_.cell_blocks), sink, scratch);
  });
}

template class StepJacobian<float>;
template class StepJacobian<double>;

}  // namespace stiefel
