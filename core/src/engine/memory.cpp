#include "engine/memory.hpp"

#include <algorithm>
#include <cmath>

#include "engine/slice_pass.hpp"
#include "record/recorder_thread.hpp"

namespace stiefel {
namespace {

/// Memory of two batches, one in use and one being filled, and of the order of a finite training set in two passes.
double bytes_of_data(const TaskShape& task, double batch, double scalar) {
  const double columns = batch * double(task.steps), scored = task.readout == ReadoutKind::every ? columns : batch;
  const double input = task.input == InputKind::dense     ? double(task.input_size) * scalar
                       : task.input == InputKind::symbols ? double(sizeof(std::int32_t))
                                                          : 0;
  const double target = task.labels ? double(sizeof(std::int32_t)) : double(task.output_size) * scalar;
  return 2 * (columns * input + scored * (target + scalar) + batch * sizeof(Index)) +
         2 * double(task.training_set) * sizeof(std::int64_t);
}

/// Memory of all maps: W and its two packed forms on the dense route. Records of spectra or orthogonality add twice the
/// largest W in double precision.
template <class S> double bytes_of_maps(const Model<S>& model, const RecordOptions& record) {
  double dense = 0, largest = 0;
  for (const auto& map : model.maps) {
    const double size = double(map->rows()) * double(map->cols());
    if (map->dense()) dense += 3 * size;
    largest = std::max(largest, size);
  }
  return dense * sizeof(S) + (record.spectrum > 0 || record.orthogonality > 0 ? 2 * largest * sizeof(double) : 0);
}

}  // namespace

double recorded_bytes(const Layout& layout, const Experiment& experiment) {
  double a_step = 0;
  for (const auto& [name, period] : experiment.record.blocks)
    if (const Index block = layout.find(name); block >= 0 && period > 0)
      a_step += double(layout.block(block).size) * sizeof(double) / double(period);
  // Rows are held twice while a vector grows or the written ones are read back, and further ones are queued.
  const double most = 2. * double(most_unpublished + most_queued), rows = a_step * double(experiment.train.steps);
  return experiment.train.steps > 0 ? std::min(3 * rows, most) : a_step > 0 ? most : 0;
}

template <class S> double training_bytes(const Model<S>& model, const Experiment& experiment, int ranks) {
  const TaskShape& task = model.task;
  const bool norms = experiment.record.gradient_norms > 0;
  const Index batch = experiment.train.batch, slices = slice_count(batch), columns = (batch + slices - 1) / slices,
              chunk = chunk_steps(columns, task.steps, model.chunk);
  const double scored = double(columns) * (task.readout == ReadoutKind::every ? double(chunk) : 1);

  double panels = slice_room(model, columns, task.steps, chunk, {.norms = norms}).sum() +
                  scored * double(task.output_size) * (task.labels ? 2 : 3);  // outputs, their gradient, targets
  double sums = double(model.layout.size());
  model.each_recurrence([&](const auto&, const auto& r) { sums += double(r.input->accumulator()); });
  for (const auto& map : model.maps) sums += double(map->accumulator());
  const TrainOptions& train = experiment.train;
  const double copies = 3 + (train.accumulate > 1 ? 1 : 0) + (train.average > 0 ? 2 : 0);  // θ, gradient, previous θ
  const double parameters = copies * double(model.layout.size());

  const double numbers = panels * std::ceil(double(slices) / ranks) + sums * double(slices) + parameters;
  const double per_step =
      double(slices) * sizeof(Index) + (norms ? 6 * sizeof(double) * double(model.layers.size()) : 0);
  return numbers * sizeof(S) + bytes_of_maps(model, experiment.record) + bytes_of_data(task, double(batch), sizeof(S)) +
         double(task.steps) * per_step + recorded_bytes(model.layout, experiment);
}

template double training_bytes(const Model<float>&, const Experiment&, int);
template double training_bytes(const Model<double>&, const Experiment&, int);

}  // namespace stiefel
