#include "engine/slice_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/room.hpp"
#include "host/metric_values.hpp"

namespace stiefel {
namespace {

template <class S> Index padded(Index rows) {
  constexpr Index line = 64 / Index(sizeof(S));
  return (rows + line - 1) / line * line;
}

template <class P> double squares(const P& panel) { return panel.template cast<double>().squaredNorm(); }

}  // namespace

double SliceRoom::sum() const {
  double all = scratch;
  for (const LayerRoom& l : layers) {
    all += l.h + l.gate + l.stream + l.mask + l.dstream + l.dgate + l.dh + l.reversed;
    for (const RecurrenceRoom& r : l.recurrences) all += r.saved + r.entering + r.panel + r.delta + r.dhidden;
  }
  return all;
}

template <class S>
SliceRoom slice_room(const Model<S>& m, Index columns, Index steps, Index chunk, const PassRequest& request) {
  const Index span = chunk * columns;
  const bool gradient = request.gradient;
  const double width = double(columns), kept = gradient && !m.recompute ? double(steps) : double(chunk);
  SliceRoom room;
  Index rows_below = 0;
  for (const Layer<S>& layer : m.layers) {
    LayerRoom& l = room.layers.emplace_back();
    const double panel = double(layer.rows) * double(span);
    const bool both = layer.recurrences.size() > 1;
    for (const Recurrence<S>& recurrence : layer.recurrences) {
      const Cell<S>& cell = *recurrence.cell;
      const NetworkMaps<S>& maps = *recurrence.maps;
      RecurrenceRoom& r = l.recurrences.emplace_back();
      r.saved = double(padded<S>(cell.saved_rows())) * (kept + 1) * width;
      if (gradient && m.recompute)
        r.entering = double(cell.state_rows()) * width * std::ceil(double(steps) / double(chunk));
      r.panel = double(recurrence.input->panel(span));
      if (gradient) r.delta = double(padded<S>(cell.delta_rows())) * double(span);
      if (gradient && request.norms) r.dhidden = double(cell.output_rows()) * double(span);
      room.scratch = std::max(room.scratch, double(cell.scratch(columns)) + double(maps.scratch(span)));
    }
    if (both) l.h = panel;
    if (layer.gate.present()) l.gate = 2 * panel;
    if (!layer.plain()) l.stream = panel;
    const Index below = std::exchange(rows_below, layer.rows);
    if (!gradient) continue;
    if (layer.dropout > 0) l.mask = l.dgate = panel;
    l.dstream = double(padded<S>(layer.rows)) * double(span);
    if (layer.gate.present()) l.dh = panel;
    if (both) l.reversed = double(std::max(layer.rows, below)) * double(span);
  }
  return room;
}

template SliceRoom slice_room(const Model<float>&, Index, Index, Index, const PassRequest&);
template SliceRoom slice_room(const Model<double>&, Index, Index, Index, const PassRequest&);

/// Sends gradients of a recurrence to the slice's sums, or nowhere.
template <class S> class SlicePass<S>::Sink final : public GradientSink<S> {
 public:
  Sink(SlicePass& pass, const Recurrence<S>& recurrence, bool wanted)
      : pass_(pass), recurrence_(recurrence), wanted_(wanted) {}
  void map(Index first, Index count, CMat<S> X, CMat<S> dY) override {
    if (!wanted_) return;
    const NetworkMaps<S>& maps = *recurrence_.maps;
    const Index of_cell = recurrence_.cell->scratch(pass_.slice_->columns());
    Scratch<S> scratch{std::span<S>(pass_.scratch_).subspan(std::size_t(of_cell))};
    for (Index i = first, row = 0; i < first + count; row += maps[i].rows(), ++i)
      if (!maps[i].frozen())
        maps[i].accumulate(X, rows_of(dY, row, maps[i].rows()), pass_.map_sum(recurrence_.first_map + i), scratch);
  }
  Blocks<S> blocks() override { return wanted_ ? pass_.gradient_of(recurrence_.cell_blocks) : Blocks<S>{}; }

 private:
  SlicePass& pass_;
  const Recurrence<S>& recurrence_;
  bool wanted_;
};

template <class S> void SlicePass<S>::run(const Model<S>& model, const Task<S>& task, const Batch<S>& batch,
                                          const Slice& slice, const PassRequest& request, double scale,
                                          double last_scale, const Matrix<S>& carried, Matrix<S>* outputs) {
  expect(model, task, slice, request);
  batch_ = &batch, outputs_ = outputs;
  scoring_.begin(model, task, batch, slice);
  prepare_memory();
  enter(carried);
  const Index chunks = (slice.steps() + chunk_ - 1) / chunk_;
  const std::vector<Metric> metrics = request.gradient ? std::vector<Metric>() : task.metrics();
  measured_.assign(count_of_ratios(metrics, slice.columns()), {});
  const auto start = std::chrono::steady_clock::now();
  for (Index i = 0; i < chunks; ++i) {
    forward(i);
    if (!request.gradient) score(i, Scored::all, scale);
  }
  sums_.metrics = sums_of_sequences(metrics, measured_, slice.columns());
  sums_.forward_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!request.gradient) return;

  // backward() scores each chunk before it goes back through it; the loss of the last steps alone is not kept.
  if (request.norms && task.shape().readout == ReadoutKind::every) {
    const double loss = sums_.loss;
    backward(Scored::last_steps, last_scale, &sums_.last_gradient);
    sums_.loss = loss;
  }
  backward(Scored::all, scale, request.norms ? &sums_.gradient : nullptr);
  if (request.norms && task.shape().readout == ReadoutKind::last) sums_.last_gradient = sums_.gradient;
  for (LayerPass& l : layers_)
    for (RecurrencePass& r : l.recurrences)
      if (l.layer->learned_state()) as_vector(gradient_of(r.recurrence->state_block)[0]) += r.dstate.rowwise().sum();
}

template <class S>
void SlicePass<S>::expect(const Model<S>& model, const Task<S>& task, const Slice& slice, const PassRequest& request) {
  model_ = &model, task_ = &task, slice_ = &slice, request_ = request;
  prepare_results();
}

template <class S> void SlicePass<S>::prepare_results() {
  const Model<S>& m = *model_;
  const std::size_t entries = std::size_t(slice_->steps()) * m.layers.size();
  leaving_.resize(m.state_rows, slice_->columns());
  sums_ = {};
  sums_.metrics.assign(request_.gradient ? 0 : count_of_parts(task_->metrics()), {});
  if (request_.norms)
    for (std::vector<double>* sums : {&sums_.hidden, &sums_.gradient, &sums_.last_gradient}) sums->assign(entries, 0.0);
  const bool wanted = request_.gradient;
  const Index plain = m.maps.empty() ? m.layout.size() : m.layout.offset(m.maps[0].blocks.first);
  gradient_.assign(wanted ? plain : 0, S(0));
  std::size_t number = 0;
  m.each_recurrence([&](const Layer<S>&, const Recurrence<S>& r) {
    if (input_sums_.size() <= number) input_sums_.emplace_back();
    input_sums_[number++].assign(wanted ? r.input->accumulator() : 0, S(0));
  });
  map_sums_.resize(m.maps.size());
  for (std::size_t i = 0; i < m.maps.size(); ++i) map_sums_[i].assign(wanted ? m.maps[i]->accumulator() : 0, S(0));
}

template <class S> void SlicePass<S>::prepare_memory() {
  const Model<S>& m = *model_;
  const Index columns = slice_->columns(), steps = slice_->steps();
  chunk_ = chunk_steps(columns, steps, m.chunk);
  keep_ = request_.gradient && !m.recompute;
  held_ = -1;
  const SliceRoom wanted = slice_room(m, columns, steps, chunk_, request_);
  room(scratch_, Index(wanted.scratch));
  layers_.resize(m.layers.size());
  Index number = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerPass& l = layers_[i];
    const LayerRoom& sizes = wanted.layers[i];
    l.layer = &m.layers[i];
    l.recurrences.resize(l.layer->recurrences.size());
    for (std::size_t j = 0; j < l.recurrences.size(); ++j) {
      RecurrencePass& r = l.recurrences[j];
      r.recurrence = &l.layer->recurrences[j];
      r.number = number++;
      r.stride = padded<S>(r.recurrence->cell->saved_rows());
      room(r.saved, Index(sizes.recurrences[j].saved));
      room(r.entering, Index(sizes.recurrences[j].entering));
      room(r.panel, Index(sizes.recurrences[j].panel));
      room(r.delta, Index(sizes.recurrences[j].delta));
      room(r.dhidden, Index(sizes.recurrences[j].dhidden));
    }
    room(l.h, Index(sizes.h));
    room(l.gate, Index(sizes.gate));
    room(l.stream, Index(sizes.stream));
    room(l.mask, Index(sizes.mask));
    room(l.dstream, Index(sizes.dstream));
    room(l.dgate, Index(sizes.dgate));
    room(l.dh, Index(sizes.dh));
    room(l.reversed, Index(sizes.reversed));
  }
}

template <class S> void SlicePass<S>::enter(const Matrix<S>& carried) {
  for (LayerPass& l : layers_)
    for (RecurrencePass& r : l.recurrences) {
      const Cell<S>& cell = *r.recurrence->cell;
      Mat<S> state =
          rows_of(mat(r.saved.data(), r.stride, slice_->columns(), r.stride), cell.state_row(), cell.state_rows());
      if (carried.size())
        for (Index c = 0; c < state.cols(); ++c)
          state.col(c) = carried.col(slice_->sequences[c]).segment(r.recurrence->state, state.rows());
      else if (l.layer->learned_state())
        state.colwise() = as_vector(model_->part(r.recurrence->state_block)[0]);
      else
        state.setZero();
    }
}

template <class S> Chunk<S> SlicePass<S>::chunk(RecurrencePass& r, Index number, bool record_hidden) {
  const Cell<S>& cell = *r.recurrence->cell;
  const Index first = first_step(number), steps = steps_of(number), columns = slice_->columns();
  const auto wanted = [&](bool is, std::vector<S>& numbers, Index rows, Index stride) {
    return is ? mat(numbers.data(), rows, steps * columns, stride) : Mat<S>();
  };
  return {.first = first,
          .steps = steps,
          .columns = columns,
          .active = slice_->active.data() + first,
          .saved = mat(r.saved.data() + (keep_ ? first * columns * r.stride : 0), cell.saved_rows(),
                       (steps + 1) * columns, r.stride),
          .delta = wanted(request_.gradient, r.delta, cell.delta_rows(), padded<S>(cell.delta_rows())),
          .dstate = request_.gradient ? view(r.dstate) : Mat<S>(),
          .dhidden = wanted(record_hidden, r.dhidden, cell.output_rows(), cell.output_rows()),
          .output_in_state = cell.output_in_state(),
          .message_clip = model_->message_clip};
}

template <class S> Mat<S> SlicePass<S>::entering_state(const RecurrencePass& r, const Chunk<S>& c) const {
  const Cell<S>& cell = *r.recurrence->cell;
  return view(rows_of(c.saved, cell.state_row(), cell.state_rows()).leftCols(c.columns));
}

// ---- forward

template <class S> void SlicePass<S>::forward(Index number) {
  for (LayerPass& l : layers_)
    for (RecurrencePass& r : l.recurrences) {
      if (keep_) continue;
      const Cell<S>& cell = *r.recurrence->cell;
      Mat<S> state = entering_state(r, chunk(r, number));
      if (number > 0)
        state =
            rows_of(cmat(r.saved.data() + chunk_ * slice_->columns() * r.stride, r.stride, slice_->columns(), r.stride),
                    cell.state_row(), cell.state_rows());
      if (request_.gradient)
        mat(r.entering.data() + number * state.size(), state.rows(), state.cols(), state.rows()) = state;
    }
  held_ = number;
  compute(number);
  for (std::size_t l = 0; l < layers_.size(); ++l)
    for (RecurrencePass& r : layers_[l].recurrences) {
      note_leaving(r, chunk(r, number));
      if (request_.norms) note_hidden(Index(l), r, number);
    }
}

template <class S> void SlicePass<S>::compute(Index number) {
  for (Index l = 0; l < Index(layers_.size()); ++l) {
    for (RecurrencePass& r : layers_[std::size_t(l)].recurrences) compute(l, r, number);
    emit(l, number);
  }
}

template <class S> void SlicePass<S>::compute(Index layer, RecurrencePass& r, Index number) {
  const Recurrence<S>& recurrence = *r.recurrence;
  Chunk<S> c = chunk(r, number);
  Mat<S> fresh =
      mat(c.saved.data() + c.columns * r.stride, recurrence.cell->input_rows(), c.steps * c.columns, r.stride);
  if (layer == 0)
    recurrence.input->forward({*batch_, *slice_, c.first, c.steps, recurrence.reversed}, fresh, r.panel);
  else
    recurrence.input->forward(read(layer, r, number), fresh);
  Scratch<S> scratch{std::span<S>(scratch_)};
  recurrence.cell.call(
      "forward", [&] { recurrence.cell->forward(c, *recurrence.maps, model_->part(recurrence.cell_blocks), scratch); });
}

/// Copies the (normalized) outputs of the layer below with a row of ones below them; they are zero where a sequence has
/// ended.
template <class S> CMat<S> SlicePass<S>::read(Index layer, RecurrencePass& r, Index number) {
  const Layer<S>& here = *layers_[std::size_t(layer)].layer;
  const CMat<S> s = stream(layer - 1, number);
  const CBlocks<S> norm = model_->part(here.norm_blocks);
  const Index first = first_step(number), steps = steps_of(number), rows = s.rows();
  S* x = r.panel.data();
  for (Index t = 0; t < steps; ++t)
    for (Index c = 0; c < slice_->columns(); ++c, x += rows + 1) {
      x[rows] = 1;
      if (slice_->active[first + t] <= c) {
        std::fill_n(x, rows, S(0));
        continue;
      }
      const S* below = s.data() + place(*r.recurrence, t, c) * s.outerStride();
      if (here.norm.present())
        here.norm.forward(norm, below, x);
      else
        std::copy_n(below, rows, x);
    }
  return cmat<S>(r.panel.data(), rows + 1, steps * slice_->columns(), rows + 1);
}

template <class S> void SlicePass<S>::note_leaving(const RecurrencePass& r, const Chunk<S>& c) {
  const Cell<S>& cell = *r.recurrence->cell;
  for (Index column = 0; column < c.columns; ++column) {
    const Index t = slice_->lengths[column] - 1 - c.first;
    if (t >= 0 && t < c.steps)
      leaving_.col(column).segment(r.recurrence->state, cell.state_rows()) =
          c.saved.col((t + 1) * c.columns + column).segment(cell.state_row(), cell.state_rows());
  }
}

template <class S> void SlicePass<S>::note_hidden(Index layer, RecurrencePass& r, Index number) {
  const Cell<S>& cell = *r.recurrence->cell;
  const Chunk<S> c = chunk(r, number);
  for (Index t = 0; t < c.steps; ++t) {
    const Mat<S> h = rows_of(c.at(t), cell.output_row(), cell.output_rows());
    if (!r.recurrence->reversed)
      sums_.hidden[std::size_t((c.first + t) * Index(layers_.size()) + layer)] += squares(h);
    else
      for (Index column = 0; column < h.cols(); ++column)
        sums_.hidden[std::size_t((slice_->lengths[column] - 1 - t) * Index(layers_.size()) + layer)] +=
            squares(h.col(column));
  }
}

/// The outputs of the layer's cells for a chunk.
template <class S> CMat<S> SlicePass<S>::hidden(Index layer, Index number) {
  LayerPass& l = layers_[std::size_t(layer)];
  if (l.recurrences.size() > 1) return cmat(l.h.data(), l.layer->rows, columns_of(number), l.layer->rows);
  RecurrencePass& r = l.recurrences[0];
  const Chunk<S> c = chunk(r, number);
  return cmat(c.saved.data() + c.columns * r.stride + r.recurrence->cell->output_row(), l.layer->rows,
              c.steps * c.columns, r.stride);
}

template <class S> CMat<S> SlicePass<S>::stream(Index layer, Index number) {
  LayerPass& l = layers_[std::size_t(layer)];
  if (l.layer->plain()) return hidden(layer, number);
  return cmat(l.stream.data(), l.layer->rows, columns_of(number), l.layer->rows);
}

template <class S> void SlicePass<S>::emit(Index layer, Index number) {
  LayerPass& l = layers_[std::size_t(layer)];
  const Layer<S>& here = *l.layer;
  if (here.plain()) return;
  const Index rows = here.rows, columns = columns_of(number);
  if (l.recurrences.size() > 1) {
    Mat<S> h = mat(l.h.data(), rows, columns, rows);
    h.setZero();
    Index row = 0;
    for (RecurrencePass& r : l.recurrences) {
      const Cell<S>& cell = *r.recurrence->cell;
      const Chunk<S> c = chunk(r, number);
      for (Index t = 0; t < c.steps; ++t)
        for (Index column = 0; column < c.active[t]; ++column)
          h.col(place(*r.recurrence, t, column)).segment(row, cell.output_rows()) =
              c.at(t).col(column).segment(cell.output_row(), cell.output_rows());
      row += cell.output_rows();
    }
  }
  const CMat<S> h = hidden(layer, number);
  Mat<S> s = mat(l.stream.data(), rows, columns, rows);
  if (here.gate.present())
    here.gate.forward(model_->part(here.gate_blocks), h, mat(l.gate.data(), 2 * rows, columns, 2 * rows), s);
  else
    s = h;
  if (drops(here)) {
    draw_mask(layer, number);
    s.array() *= cmat(l.mask.data(), rows, columns, rows).array();
  }
  if (here.residual) s += stream(layer - 1, number);
  for (Index t = 0; t < steps_of(number); ++t) {
    const Index active = slice_->active[first_step(number) + t];
    s.middleCols(t * slice_->columns() + active, slice_->columns() - active).setZero();
  }
}

/// Draws 0 or 1 / (1 − p) for every output, from random numbers that depend only on the request, the layer, the step
/// and the sequence. p is rounded to a multiple of 2⁻¹⁶.
template <class S> void SlicePass<S>::draw_mask(Index layer, Index number) {
  LayerPass& l = layers_[std::size_t(layer)];
  const auto below = std::uint32_t(std::lround(l.layer->dropout * 65536));
  const S kept = S(65536. / std::max(1u, 65536 - below));
  const std::string name = fmt::format("dropout/{}/{}", layer, request_.dropout);
  const Index rows = l.layer->rows;
  S* mask = l.mask.data();
  for (Index t = 0; t < steps_of(number); ++t)
    for (Index c = 0; c < slice_->columns(); ++c, mask += rows) {
      const Index place = (first_step(number) + t) * batch_->sequences() + slice_->sequences[c];
      Rng rng(request_.seed, name, std::uint64_t(place));
      for (Index i = 0; i < rows; i += 2) {
        const std::uint32_t bits = rng.bits32();
        mask[i] = (bits & 0xffff) < below ? S(0) : kept;
        if (i + 1 < rows) mask[i + 1] = bits >> 16 < below ? S(0) : kept;
      }
    }
}

// ---- backward

template <class S> Mat<S> SlicePass<S>::dstream(Index layer, Index number) {
  LayerPass& l = layers_[std::size_t(layer)];
  return mat(l.dstream.data(), l.layer->rows, columns_of(number), padded<S>(l.layer->rows));
}

template <class S> void SlicePass<S>::backward(Scored scored, double scale, std::vector<double>* norms) {
  const bool accumulate = scored == Scored::all;
  const Index count = Index(layers_.size());
  for (LayerPass& l : layers_)
    for (RecurrencePass& r : l.recurrences) r.dstate.setZero(r.recurrence->cell->state_rows(), slice_->columns());
  for (Index number = (slice_->steps() - 1) / chunk_; number >= 0; --number) {
    if (!keep_ && held_ != number) {
      for (LayerPass& l : layers_)
        for (RecurrencePass& r : l.recurrences) {
          Mat<S> state = entering_state(r, chunk(r, number));
          state = mat(r.entering.data() + number * state.size(), state.rows(), state.cols(), state.rows());
        }
      compute(number);
      held_ = number;
    } else {
      for (Index l = 0; l < count; ++l) emit(l, number);
    }
    backward(count - 1, number, score(number, scored, scale), accumulate, norms);
  }
}

template <class S>
void SlicePass<S>::backward(Index layer, Index number, CMat<S> ds, bool accumulate, std::vector<double>* norms) {
  LayerPass& l = layers_[std::size_t(layer)];
  const Layer<S>& here = *l.layer;
  const Index rows = here.rows, columns = ds.cols();
  CMat<S> dh = ds;
  if (columns > 0 && drops(here)) {
    Mat<S> dg = mat(l.dgate.data(), rows, columns, rows);
    dg.array() = ds.array() * cmat(l.mask.data(), rows, columns, rows).array();
    new (&dh) CMat<S>(dg);
  }
  if (columns > 0 && here.gate.present()) {
    Mat<S> behind = mat(l.dh.data(), rows, columns, rows);
    here.gate.backward(hidden(layer, number), dh, mat(l.gate.data(), 2 * rows, columns, 2 * rows), behind,
                       accumulate ? gradient_of(here.gate_blocks) : Blocks<S>());
    new (&dh) CMat<S>(behind);
  }
  Index row = 0;
  for (RecurrencePass& r : l.recurrences) {
    const Index own = r.recurrence->cell->output_rows();
    if (columns == 0 || !r.recurrence->reversed) {
      backward(layer, r, number, rows_of(dh, row, own), accumulate, norms);
    } else {
      Mat<S> reversed = mat(l.reversed.data(), own, columns, own);
      reversed.setZero();
      for (Index t = 0; t < steps_of(number); ++t)
        for (Index c = 0; c < slice_->active[first_step(number) + t]; ++c)
          reversed.col(t * slice_->columns() + c) = dh.col(place(*r.recurrence, t, c)).segment(row, own);
      backward(layer, r, number, reversed, accumulate, norms);
    }
    row += own;
  }
  if (layer == 0) return;
  backward_below(layer, number, ds, accumulate);
  backward(layer - 1, number, dstream(layer - 1, number), accumulate, norms);
}

template <class S> void SlicePass<S>::backward(Index layer, RecurrencePass& r, Index number, CMat<S> dh,
                                               bool accumulate, std::vector<double>* norms) {
  const Recurrence<S>& recurrence = *r.recurrence;
  const Cell<S>& cell = *recurrence.cell;
  Chunk<S> c = chunk(r, number, norms != nullptr);
  for (Index t = 0; t < c.steps; ++t)
    c.delta.middleCols(t * c.columns + c.active[t], c.columns - c.active[t]).setZero();
  Sink sink(*this, recurrence, accumulate);
  Scratch<S> scratch{std::span<S>(scratch_)};
  recurrence.cell.call(
      "backward", [&] { cell.backward(c, dh, *recurrence.maps, model_->part(recurrence.cell_blocks), sink, scratch); });
  const Index count = Index(layers_.size());
  for (Index t = 0; norms && t < c.steps; ++t) {
    const Mat<S> step = c.step(c.dhidden, t);
    if (!recurrence.reversed)
      (*norms)[std::size_t((c.first + t) * count + layer)] += squares(step);
    else
      for (Index column = 0; column < step.cols(); ++column)
        (*norms)[std::size_t((slice_->lengths[column] - 1 - t) * count + layer)] += squares(step.col(column));
  }
  if (!accumulate) return;
  const Mat<S> delta = rows_of(c.delta, 0, cell.input_rows());
  std::vector<S>& sum = input_sums_[std::size_t(r.number)];
  if (layer == 0)
    recurrence.input->accumulate({*batch_, *slice_, c.first, c.steps, recurrence.reversed}, delta, sum, r.panel);
  else
    recurrence.input->accumulate(read(layer, r, number), delta, sum);
}

template <class S> void SlicePass<S>::backward_below(Index layer, Index number, CMat<S> ds, bool accumulate) {
  LayerPass& l = layers_[std::size_t(layer)];
  const Layer<S>& here = *l.layer;
  Mat<S> below = dstream(layer - 1, number);
  for (RecurrencePass& r : l.recurrences) {
    const Chunk<S> c = chunk(r, number);
    const CMat<S> delta = rows_of(c.delta, 0, r.recurrence->cell->input_rows());
    if (!r.recurrence->reversed) {
      r.recurrence->input->backward(delta, below);
      continue;
    }
    Mat<S> du = mat(l.reversed.data(), below.rows(), below.cols(), below.rows());
    r.recurrence->input->backward(delta, du);
    for (Index t = 0; t < c.steps; ++t)
      for (Index column = 0; column < c.active[t]; ++column)
        below.col(place(*r.recurrence, t, column)) += du.col(t * c.columns + column);
  }
  const CMat<S> s = stream(layer - 1, number);
  if (here.norm.present())
    for (Index t = 0; t < steps_of(number); ++t)
      for (Index c = 0; c < slice_->active[first_step(number) + t]; ++c) {
        const Index column = t * slice_->columns() + c;
        here.norm.backward(model_->part(here.norm_blocks), s.col(column).data(), below.col(column).data(),
                           accumulate ? gradient_of(here.norm_blocks) : Blocks<S>());
      }
  if (here.residual && ds.cols() > 0) below += ds;
}

template <class S> void SlicePass<S>::add_sums(const SlicePass& other) {
  const auto add = [](std::vector<S>& sum, const std::vector<S>& part) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  };
  add(gradient_, other.gradient_);
  for (std::size_t r = 0; r < input_sums_.size(); ++r) add(input_sums_[r], other.input_sums_[r]);
  for (std::size_t m = 0; m < map_sums_.size(); ++m) add(map_sums_[m], other.map_sums_[m]);
}

// ---- loss

template <class S> CMat<S> SlicePass<S>::score(Index number, Scored scored, double scale) {
  const Index last = Index(layers_.size()) - 1, rows = model_->layers.back().rows;
  const CMat<S> nothing(nullptr, rows, 0, rows);
  if (scoring_.choose(first_step(number), steps_of(number), scored) == 0) return nothing;
  const CMat<S> top = stream(last, number);
  sums_.loss += scale * scoring_.forward(top, request_.gradient, request_.gradient ? nullptr : &measured_, outputs_);
  if (!request_.gradient) return nothing;
  const Layout::Part readout = model_->readout_blocks;
  const Index first = model_->layout.offset(readout.first), end = model_->layout.offset(readout.end());
  const std::span<S> dreadout(gradient_.data() + first, std::size_t(end - first));
  const Mat<S> dtop = dstream(last, number);
  scoring_.backward(top, scale, scored == Scored::all ? dreadout : std::span<S>(), dtop);
  return dtop;
}

template class SlicePass<float>;
template class SlicePass<double>;

}  // namespace stiefel
