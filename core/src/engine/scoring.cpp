#include "engine/scoring.hpp"

#include <algorithm>

#include "engine/room.hpp"

namespace stiefel {

template <class S> Index Scoring<S>::choose(Index first, Index steps, Scored scored) {
  first_ = first, steps_ = steps;
  places_.clear();
  const Index columns = slice_->columns();
  if (scored == Scored::all && task_->shape().readout == ReadoutKind::every) {
    for (Index t = 0; t < steps; ++t)
      for (Index c = 0; c < columns; ++c) places_.emplace_back(t, c);
  } else {
    for (Index c = 0; c < columns; ++c)
      if (const Index t = slice_->lengths[c] - 1 - first; t >= 0 && t < steps) places_.emplace_back(t, c);
  }
  return count();
}

template <class S>
double Scoring<S>::forward(CMat<S> top, bool gradient, std::vector<Ratio>* metrics, Matrix<S>* outputs) {
  const Index k = model_->readout->size();
  Mat<S> o = mat(room(output_, k * count()), k, count(), k);
  Mat<S> d_o = mat(gradient ? room(dout_, k * count()) : nullptr, k, gradient ? count() : 0, k);
  model_->readout->forward(model_->part(model_->readout_blocks), read(top), o);
  Targets<S> wanted = targets();
  const double loss = task_->loss(o, wanted, d_o);
  if (metrics) {
    place(wanted);
    task_->measure(o, wanted, *metrics);
  }
  if (outputs)
    for (Index i = 0; i < count(); ++i)
      if (alive(i)) outputs->col(source(i)) = o.col(i);
  return loss;
}

template <class S> void Scoring<S>::backward(CMat<S> top, double scale, std::span<S> dreadout, Mat<S> dtop) {
  const Readout<S>& readout = *model_->readout;
  const Index k = readout.size(), rows = dtop.rows();
  Mat<S> d_o = mat(dout_.data(), k, count(), k);
  d_o *= S(scale);
  if (!dreadout.empty())
    readout.accumulate(all_columns() ? top : cmat(gathered_.data(), rows, count(), rows), d_o, dreadout);
  if (all_columns()) return readout.backward(d_o, dtop);
  Mat<S> dgathered = mat(room(dgathered_, rows * count()), rows, count(), rows);
  readout.backward(d_o, dgathered);
  dtop.setZero();
  for (Index i = 0; i < count(); ++i) dtop.col(column(i)) = dgathered.col(i);
}

/// The columns of `top` at the scored places.
template <class S> CMat<S> Scoring<S>::read(CMat<S> top) {
  if (all_columns()) return top;
  Mat<S> h = mat(room(gathered_, top.rows() * count()), top.rows(), count(), top.rows());
  for (Index i = 0; i < count(); ++i) h.col(i) = top.col(column(i));
  return h;
}

template <class S> Targets<S> Scoring<S>::targets() {
  const TaskShape& shape = model_->task;
  const Index size = shape.output_size;
  weights_.assign(std::size_t(count()), S(0));
  for (Index i = 0; i < count(); ++i)
    if (alive(i)) weights_[i] = batch_->weights()[source(i)];
  Targets<S> targets;
  targets.weights = weights_;
  if (shape.labels) {
    labels_.assign(std::size_t(count()), 0);
    for (Index i = 0; i < count(); ++i)
      if (alive(i)) labels_[i] = batch_->labels()[source(i)];
    targets.labels = labels_;
  } else {
    Mat<S> values = mat(room(values_, size * count()), size, count(), size);
    for (Index i = 0; i < count(); ++i)
      if (alive(i))
        values.col(i) = batch_->targets().col(source(i));
      else
        values.col(i).setZero();
    new (&targets.values) CMat<S>(values);
  }
  return targets;
}

template <class S> void Scoring<S>::place(Targets<S>& targets) {
  steps_of_.clear(), sequences_of_.clear();
  for (const auto& [t, column] : places_) steps_of_.push_back(first_ + t), sequences_of_.push_back(column);
  targets.steps = steps_of_;
  targets.sequences = sequences_of_;
  targets.sequence_count = slice_->columns();
}

template class Scoring<float>;
template class Scoring<double>;

}  // namespace stiefel
