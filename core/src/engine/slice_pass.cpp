// Truncation-free BPTT of one slice. Saved panels have one more block than steps: block 0 is the entering state.
#include "engine/slice_pass.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace stiefel {
namespace {

template <class S> Index padded(Index rows) {
  constexpr Index line = 64 / Index(sizeof(S));
  return (rows + line - 1) / line * line;
}

/// At least `size` numbers; new ones are zero, old ones are whatever they were.
template <class S> S* room(std::vector<S>& memory, Index size) {
  if (Index(memory.size()) < size) memory.resize(size);
  return memory.data();
}

template <class S> double squares(const Mat<S>& panel) { return panel.template cast<double>().squaredNorm(); }

}  // namespace

template <class S>
SliceRoom slice_room(const Model<S>& m, Index columns, Index steps, Index chunk, const PassRequest& request) {
  const Cell<S>& cell = *m.cell;
  const Index span = chunk * columns;
  const double width = double(columns), kept = request.gradient && !m.recompute ? double(steps) : double(chunk);
  SliceRoom room;
  room.saved = double(padded<S>(cell.saved_rows())) * (kept + 1) * width;
  if (request.gradient && m.recompute)
    room.entering = double(cell.state_rows()) * width * std::ceil(double(steps) / double(chunk));
  room.panel = double(m.input->panel(span));
  room.scratch = double(std::max(cell.scratch(columns) + m.maps->scratch(columns), m.maps->scratch(span)));
  if (!request.gradient) return room;
  room.delta = double(padded<S>(cell.delta_rows())) * double(span);
  room.doutput = double(padded<S>(cell.output_rows())) * double(span);
  if (request.gradient_norms) room.dhidden = double(cell.output_rows()) * double(span);
  return room;
}

template SliceRoom slice_room(const Model<float>&, Index, Index, Index, const PassRequest&);
template SliceRoom slice_room(const Model<double>&, Index, Index, Index, const PassRequest&);

/// Sends gradients to the slice's sums, or nowhere.
template <class S> class SlicePass<S>::Sink final : public GradientSink<S> {
 public:
  Sink(SlicePass& pass, bool wanted) : pass_(pass), wanted_(wanted) {}
  void map(Index first, Index count, CMat<S> X, CMat<S> dY) override {
    if (!wanted_) return;
    const NetworkMaps<S>& maps = *pass_.model_->maps;
    Scratch<S> scratch{std::span<S>(pass_.scratch_)};
    for (Index i = first, row = 0; i < first + count; row += maps[i].rows(), ++i)
      if (!maps[i].frozen()) maps[i].accumulate(X, rows_of(dY, row, maps[i].rows()), pass_.map_sums_[i], scratch);
  }
  Blocks<S> blocks() override {
    const Model<S>& model = *pass_.model_;
    return wanted_ ? model.layout.part(pass_.gradient_.data(), model.cell_blocks) : Blocks<S>{};
  }

 private:
  SlicePass& pass_;
  bool wanted_;
};

template <class S> void SlicePass<S>::run(const Model<S>& model, const Task<S>& task, const Batch<S>& batch,
                                          const Slice& slice, const PassRequest& request, double scale,
                                          double last_scale, const Matrix<S>& carried, Matrix<S>* outputs) {
  expect(model, task, slice, request);
  batch_ = &batch, outputs_ = outputs;
  prepare_memory();
  enter(carried);
  const Index chunks = (slice.steps() + chunk_ - 1) / chunk_;
  const auto start = std::chrono::steady_clock::now();
  for (Index i = 0; i < chunks; ++i) {
    Chunk<S> c = chunk(i);
    forward(c, i);
    if (!request.gradient) score(c, Scored::all, scale, false, false);
  }
  sums_.forward_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!request.gradient) return;

  Sink sink(*this, true), nowhere(*this, false);
  if (request.gradient_norms && task.shape().readout == ReadoutKind::every) {
    const double loss = sums_.loss;
    backward(Scored::last_steps, nowhere, last_scale, &sums_.last_gradient);
    sums_.loss = loss;
  }
  backward(Scored::all, sink, scale, request.gradient_norms ? &sums_.gradient : nullptr);
  if (request.gradient_norms && task.shape().readout == ReadoutKind::last) sums_.last_gradient = sums_.gradient;
  if (model.learned_state())
    as_vector(model.layout.part(gradient_.data(), model.state_block)[0]) += dstate_.rowwise().sum();
}

template <class S>
void SlicePass<S>::expect(const Model<S>& model, const Task<S>& task, const Slice& slice, const PassRequest& request) {
  model_ = &model, task_ = &task, slice_ = &slice, request_ = request;
  prepare_results();
}

template <class S> void SlicePass<S>::prepare_results() {
  const Model<S>& m = *model_;
  const Index steps = slice_->steps();
  leaving_.resize(m.cell->state_rows(), slice_->columns());
  sums_ = {};
  sums_.metrics.assign(request_.metrics ? task_->metrics().size() : 0, {});
  if (request_.hidden_norms) sums_.hidden.assign(steps, 0.0);
  if (request_.gradient_norms) sums_.gradient.assign(steps, 0.0), sums_.last_gradient.assign(steps, 0.0);
  const bool wanted = request_.gradient;
  const Index plain = m.map_blocks.empty() ? m.layout.size() : m.layout.offset(m.map_blocks[0].first);
  gradient_.assign(wanted ? plain : 0, S(0));
  input_sum_.assign(wanted ? m.input->accumulator() : 0, S(0));
  map_sums_.resize(m.maps->count());
  for (Index i = 0; i < m.maps->count(); ++i) map_sums_[i].assign(wanted ? (*m.maps)[i].accumulator() : 0, S(0));
}

template <class S> void SlicePass<S>::prepare_memory() {
  const Model<S>& m = *model_;
  const Index columns = slice_->columns(), steps = slice_->steps();
  chunk_ = chunk_steps(columns, steps, m.chunk);
  keep_ = request_.gradient && !m.recompute;
  stride_ = padded<S>(m.cell->saved_rows());
  const SliceRoom wanted = slice_room(m, columns, steps, chunk_, request_);
  room(saved_, Index(wanted.saved));
  room(entering_, Index(wanted.entering));
  room(panel_, Index(wanted.panel));
  room(scratch_, Index(wanted.scratch));
  room(delta_, Index(wanted.delta));
  room(doutput_, Index(wanted.doutput));
  room(dhidden_, Index(wanted.dhidden));
}

template <class S> void SlicePass<S>::enter(const Matrix<S>& carried) {
  const Cell<S>& cell = *model_->cell;
  Mat<S> state = rows_of(mat(saved_.data(), stride_, slice_->columns(), stride_), cell.state_row(), cell.state_rows());
  if (carried.size())
    for (Index c = 0; c < state.cols(); ++c) state.col(c) = carried.col(slice_->sequences[c]);
  else if (model_->learned_state())
    state.colwise() = as_vector(model_->layout.part(model_->theta, model_->state_block)[0]);
  else
    state.setZero();
}

template <class S> Chunk<S> SlicePass<S>::chunk(Index number, bool record_hidden) {
  const Cell<S>& cell = *model_->cell;
  const Index first = number * chunk_, steps = std::min(chunk_, slice_->steps() - first), columns = slice_->columns();
  const auto wanted = [&](bool is, std::vector<S>& numbers, Index rows, Index stride) {
    return is ? mat(numbers.data(), rows, steps * columns, stride) : Mat<S>();
  };
  return {.first = first,
          .steps = steps,
          .columns = columns,
          .active = slice_->active.data() + first,
          .saved = mat(saved_.data() + (keep_ ? first * columns * stride_ : 0), cell.saved_rows(),
                       (steps + 1) * columns, stride_),
          .delta = wanted(request_.gradient, delta_, cell.delta_rows(), padded<S>(cell.delta_rows())),
          .dstate = request_.gradient ? view(dstate_) : Mat<S>(),
          .dhidden = wanted(record_hidden, dhidden_, cell.output_rows(), cell.output_rows()),
          .output_in_state = cell.output_in_state(),
          .message_clip = model_->message_clip};
}

template <class S> Mat<S> SlicePass<S>::entering_state(const Chunk<S>& c) const {
  return view(rows_of(c.saved, model_->cell->state_row(), model_->cell->state_rows()).leftCols(c.columns));
}

template <class S> void SlicePass<S>::compute(Chunk<S>& c) {
  const Model<S>& m = *model_;
  Mat<S> fresh = mat(c.saved.data() + c.columns * stride_, m.cell->input_rows(), c.steps * c.columns, stride_);
  m.input->forward(window(c), fresh, panel_);
  Scratch<S> scratch{std::span<S>(scratch_)};
  m.cell.call("forward", [&] { m.cell->forward(c, *m.maps, m.cell_theta(), scratch); });
}

template <class S> void SlicePass<S>::forward(Chunk<S>& c, Index number) {
  const Model<S>& m = *model_;
  const Cell<S>& cell = *m.cell;
  if (!keep_) {
    Mat<S> state = entering_state(c);
    if (number > 0)
      state = rows_of(cmat(saved_.data() + chunk_ * c.columns * stride_, stride_, c.columns, stride_), cell.state_row(),
                      cell.state_rows());
    if (request_.gradient)
      mat(entering_.data() + number * state.size(), state.rows(), state.cols(), state.rows()) = state;
    held_ = number;
  }
  compute(c);
  note_leaving(c);
  if (request_.hidden_norms)
    for (Index t = 0; t < c.steps; ++t)
      sums_.hidden[c.first + t] = squares(rows_of(c.at(t), cell.output_row(), cell.output_rows()));
}

template <class S> void SlicePass<S>::note_leaving(const Chunk<S>& c) {
  const Cell<S>& cell = *model_->cell;
  for (Index column = 0; column < c.columns; ++column) {
    const Index t = slice_->lengths[column] - 1 - c.first;
    if (t >= 0 && t < c.steps)
      leaving_.col(column) = c.saved.col((t + 1) * c.columns + column).segment(cell.state_row(), cell.state_rows());
  }
}

template <class S>
void SlicePass<S>::backward(Scored scored, GradientSink<S>& sink, double scale, std::vector<double>* norms) {
  const Model<S>& m = *model_;
  const Cell<S>& cell = *m.cell;
  const bool accumulate = scored == Scored::all;
  dstate_.setZero(cell.state_rows(), slice_->columns());
  for (Index number = (slice_->steps() - 1) / chunk_; number >= 0; --number) {
    Chunk<S> c = chunk(number, norms != nullptr);
    if (!keep_ && held_ != number) {
      Mat<S> state = entering_state(c);
      state = mat(entering_.data() + number * state.size(), state.rows(), state.cols(), state.rows());
      compute(c);
      held_ = number;
    }
    for (Index t = 0; t < c.steps; ++t)
      c.delta.middleCols(t * c.columns + c.active[t], c.columns - c.active[t]).setZero();
    const CMat<S> doutput = score(c, scored, scale, true, accumulate);
    Scratch<S> scratch{std::span<S>(scratch_)};
    m.cell.call("backward", [&] { cell.backward(c, doutput, *m.maps, m.cell_theta(), sink, scratch); });
    if (norms)
      for (Index t = 0; t < c.steps; ++t) (*norms)[c.first + t] = squares(c.step(c.dhidden, t));
    if (accumulate) m.input->accumulate(window(c), rows_of(c.delta, 0, cell.input_rows()), input_sum_, panel_);
  }
}

template <class S> void SlicePass<S>::add_sums(const SlicePass& other) {
  const auto add = [](std::vector<S>& sum, const std::vector<S>& part) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  };
  add(gradient_, other.gradient_);
  add(input_sum_, other.input_sum_);
  for (std::size_t m = 0; m < map_sums_.size(); ++m) add(map_sums_[m], other.map_sums_[m]);
}

template <class S> void SlicePass<S>::find_places(const Chunk<S>& c, Scored scored) {
  places_.clear();
  if (scored == Scored::all && task_->shape().readout == ReadoutKind::every) {
    for (Index t = 0; t < c.steps; ++t)
      for (Index column = 0; column < c.columns; ++column) places_.emplace_back(t, column);
    return;
  }
  for (Index column = 0; column < c.columns; ++column) {
    const Index t = slice_->lengths[column] - 1 - c.first;
    if (t >= 0 && t < c.steps) places_.emplace_back(t, column);
  }
}

template <class S> Targets<S> SlicePass<S>::targets(const Chunk<S>& c) {
  const TaskShape& shape = model_->task;
  const Index count = Index(places_.size());
  weights_.assign(count, S(0));
  if (shape.labels) labels_.assign(count, 0);
  S* values = shape.labels ? nullptr : room(values_, shape.output_size * count);
  for (Index i = 0; i < count; ++i) {
    const auto [t, column] = places_[i];
    const bool alive = c.active[t] > column;
    const Index source = batch_->scored(c.first + t, slice_->sequences[column]);
    if (alive) weights_[i] = batch_->weights()[source];
    if (shape.labels)
      labels_[i] = alive ? batch_->labels()[source] : 0;
    else if (alive)
      std::copy_n(batch_->targets().col(source).data(), shape.output_size, values + i * shape.output_size);
    else
      std::fill_n(values + i * shape.output_size, shape.output_size, S(0));
  }
  Targets<S> targets;
  if (shape.labels)
    targets.labels = std::span<const std::int32_t>(labels_.data(), count);
  else
    new (&targets.values) CMat<S>(cmat<S>(values, shape.output_size, count, shape.output_size));
  targets.weights = std::span<const S>(weights_.data(), count);
  return targets;
}

template <class S> CMat<S> SlicePass<S>::operand(const Chunk<S>& c, bool contiguous) {
  const Cell<S>& cell = *model_->cell;
  const Index rows = cell.output_rows();
  const S* first = c.saved.data() + c.columns * stride_ + cell.output_row();
  if (contiguous) return cmat(first, rows, c.steps * c.columns, stride_);
  Mat<S> h = mat(room(gathered_, rows * Index(places_.size())), rows, Index(places_.size()), rows);
  for (Index i = 0; i < h.cols(); ++i)
    h.col(i) = cmat(first, rows, c.steps * c.columns, stride_).col(places_[i].first * c.columns + places_[i].second);
  return h;
}

template <class S>
CMat<S> SlicePass<S>::score(const Chunk<S>& c, Scored scored, double scale, bool want_gradient, bool accumulate) {
  const Model<S>& m = *model_;
  const Readout<S>& readout = *m.readout;
  find_places(c, scored);
  const Index count = Index(places_.size()), rows = m.cell->output_rows(), k = readout.size();
  const CMat<S> nothing(nullptr, rows, 0, rows);
  if (count == 0) return nothing;

  const bool contiguous = count == c.steps * c.columns;
  const CMat<S> h = operand(c, contiguous);
  Mat<S> o = mat(room(output_, k * count), k, count, k);
  Mat<S> d_o = mat(want_gradient ? room(dout_, k * count) : nullptr, k, want_gradient ? count : 0, k);
  readout.forward(m.readout_theta(), h, o);
  const Targets<S> wanted = targets(c);
  const CMat<S> outputs = o;
  sums_.loss += scale * task_->loss(outputs, wanted, d_o);
  if (request_.metrics) task_->measure(outputs, wanted, sums_.metrics);
  if (outputs_)
    for (Index i = 0; i < count; ++i)
      if (const auto [t, column] = places_[i]; c.active[t] > column)
        outputs_->col(batch_->scored(c.first + t, slice_->sequences[column])) = outputs.col(i);
  if (!want_gradient) return nothing;

  d_o *= S(scale);
  const CMat<S> gradient = d_o;
  if (accumulate) {
    const Index first = m.layout.offset(m.readout_blocks.first);
    readout.accumulate(h, gradient,
                       std::span<S>(gradient_.data() + first, m.layout.offset(m.readout_blocks.end()) - first));
  }
  const Index stride = padded<S>(rows);
  Mat<S> dh = mat(doutput_.data(), rows, c.steps * c.columns, stride);
  if (contiguous) {
    readout.backward(gradient, dh);
    return dh;
  }
  Mat<S> dgathered = mat(room(dgathered_, rows * count), rows, count, rows);
  readout.backward(gradient, dgathered);
  dh.setZero();
  for (Index i = 0; i < count; ++i) dh.col(places_[i].first * c.columns + places_[i].second) = dgathered.col(i);
  return dh;
}

template class SlicePass<float>;
template class SlicePass<double>;

}  // namespace stiefel
