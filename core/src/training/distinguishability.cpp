// Whether the states that stand for the classes of a task stay apart as sequences become longer: the spread within a
// class, and the drift of its mean, against the smallest distance of two means at the training length. The question is
// that of arXiv 2605.07755; these norms, means and projections are our choice, as its text was not read.
#include <algorithm>
#include <cmath>

#include <stiefel/linear_algebra.hpp>

#include "training/dynamics_parts.hpp"

namespace stiefel {
namespace {

/// Of one step: the sum of the vectors of each class, their number, and the sum of all squared norms.
struct ClassSums {
  Matrix<double> sums;
  std::vector<Index> counts;
  double squares = 0;

  void add(const Vector<double>& x, std::size_t g, Index classes) {
    if (counts.empty()) {
      sums = Matrix<double>::Zero(x.size(), classes);
      counts.resize(std::size_t(classes));
    }
    sums.col(Index(g)) += x;
    squares += x.squaredNorm();
    ++counts[g];
  }
  bool has(std::size_t g) const { return !counts.empty() && counts[g] > 0; }
  Vector<double> mean(std::size_t g) const { return sums.col(Index(g)) / double(counts[g]); }
  /// The root of the mean squared distance of a vector from the mean of its class.
  double spread() const {
    double rest = squares, total = 0;
    for (std::size_t g = 0; g < counts.size(); ++g) {
      if (counts[g] == 0) continue;
      rest -= sums.col(Index(g)).squaredNorm() / double(counts[g]);
      total += double(counts[g]);
    }
    return std::sqrt(std::max(rest, 0.0) / total);
  }
};

ClassDistances distances(const std::vector<ClassSums>& steps, Index reference) {
  const ClassSums& first = steps[std::size_t(reference)];
  ClassDistances found;
  found.separation = std::numeric_limits<double>::infinity();
  for (std::size_t g = 0; g < first.counts.size(); ++g)
    for (std::size_t other = 0; other < g; ++other)
      if (first.has(g) && first.has(other))
        found.separation = std::min(found.separation, (first.mean(g) - first.mean(other)).norm());
  if (!std::isfinite(found.separation))
    throw Error("the sequences have fewer than two classes at the last step of training; use more with --classes");
  for (const ClassSums& at : steps) {
    double drift = 0;
    for (std::size_t g = 0; g < at.counts.size(); ++g)
      if (at.has(g) && first.has(g)) drift = std::max(drift, (at.mean(g) - first.mean(g)).norm());
    found.spread.push_back(at.spread() / found.separation);
    found.drift.push_back(drift / found.separation);
  }
  return found;
}

}  // namespace

Distinguishability distinguishability_of(Session<double>& session, const DynamicsOptions& options,
                                         Index trained_steps) {
  Network<double>& network = *session.network;
  const Model<double>& model = network.model();
  const TaskShape shape = session.task->shape();
  if (!shape.labels || shape.readout != ReadoutKind::every || !model.readout)
    throw Error("--classes needs a task with a class at every step, and a network with a readout");
  const Cell<double>& cell = *model.layers.back().recurrences[0].cell;
  Matrix<double> rows = as_matrix(model.part(model.readout_blocks)[0], model.readout->size(), model.readout->rows());
  if (rows.cols() != cell.output_rows())
    throw Error("--classes needs a readout of all hidden states of the last layer");
  const Index rank = std::min(rows.rows(), rows.cols());
  Matrix<double> U(rows.rows(), rank), basis(rank, rows.cols());
  std::vector<double> values(static_cast<std::size_t>(rank));
  singular_value_decomposition(view(rows), view(U), values, view(basis));
  std::vector<ClassSums> hidden(std::size_t(shape.steps)), read(std::size_t(shape.steps));
  Distinguishability found;
  each_sequence(session, options.split, options.class_sequences, [&](Batch<double>& batch, Index b) {
    const Index length = batch.length(b);
    Batch<double> one;
    one.resize(shape, 1, length);
    copy_inputs(batch, b, shape, length, one, 0);
    network.take_state();
    const CMat<double> saved = network.trace(one, session.workers).back();
    for (Index t = 0; t < length; ++t) {
      if (batch.weight(t, b) == 0) continue;
      const Vector<double> h = saved.col(t + 1).segment(cell.output_row(), cell.output_rows());
      const std::size_t g = std::size_t(batch.label(t, b));
      hidden[std::size_t(t)].add(h, g, shape.output_size);
      read[std::size_t(t)].add(basis * h, g, shape.output_size);
    }
    ++found.sequences;
  });
  found.reference = std::min(trained_steps, shape.steps) - 1;
  found.hidden = distances(hidden, found.reference);
  found.read = distances(read, found.reference);
  return found;
}

}  // namespace stiefel
