// A task under test: its batches, and their scored columns as the engine passes them to loss().
#pragma once

#include "conformance/memory.hpp"
#include "conformance/subject.hpp"
#include "engine/contents.hpp"

namespace stiefel::conformance {

using Real = Matrix<double>;

/// The scored columns of a batch, one after another: (t, b) for every step of every sequence, or the last steps.
template <class S> struct Scored {
  std::vector<std::pair<Index, Index>> places;
  Panel<S> values;  // k × c, or 0 rows
  std::vector<std::int32_t> labels;
  std::vector<S> weights;
  std::vector<Index> steps, sequences;
  Index sequence_count;

  Scored(Batch<S>& batch, const TaskShape& shape)
      : places(places_of(batch, shape)),
        values(shape.labels ? 0 : shape.output_size, Index(places.size())),
        sequence_count(batch.sequences()) {
    for (std::size_t c = 0; c < places.size(); ++c) {
      const auto [t, b] = places[c];
      weights.push_back(batch.weight(t, b));
      steps.push_back(t), sequences.push_back(b);
      if (shape.labels)
        labels.push_back(batch.label(t, b));
      else
        values.whole().col(Index(c)) = as_vector(batch.target(t, b));
    }
  }
  Index count() const { return Index(places.size()); }
  double weight() const {
    double sum = 0;
    for (const S w : weights) sum += double(w);
    return sum;
  }
  Targets<S> targets(Index first, Index count) const {
    const std::span<const std::int32_t> chosen =
        labels.empty() ? std::span<const std::int32_t>()
                       : std::span(labels).subspan(std::size_t(first), std::size_t(count));
    const auto part = [&](const auto& all) { return std::span(all).subspan(std::size_t(first), std::size_t(count)); };
    return {values.read(first, count), chosen, part(weights), part(steps), part(sequences), sequence_count};
  }
  Targets<S> targets() const { return targets(0, count()); }

 private:
  static std::vector<std::pair<Index, Index>> places_of(const Batch<S>& batch, const TaskShape& shape) {
    std::vector<std::pair<Index, Index>> places;
    for (Index b = 0; b < batch.sequences(); ++b)
      for (Index t = shape.readout == ReadoutKind::every ? 0 : batch.length(b) - 1; t < batch.length(b); ++t)
        places.emplace_back(t, b);
    return places;
  }
};

template <class S> class TaskProbe {
 public:
  TaskProbe(const Subject& subject, CheckReport& report, std::uint64_t seed, Index batch = 5)
      : subject(subject),
        report(report),
        task(subject.create<Task<S>>(TaskContext{seed, batch, subject.settings.data_directory})),
        shape(subject.call("shape", [&] { return task->shape(); })) {}

  Index batches(Split split) const {
    return subject.call("batches", [&] { return task->batches(split); });
  }
  Batch<S> fill(Split split, Index index) const {
    Batch<S> batch;
    fill_into(batch, split, index);
    return batch;
  }
  void fill_into(Batch<S>& batch, Split split, Index index) const {
    subject.call("fill", [&] { task->fill(split, index, batch); });
  }
  /// Value, and the gradient if wanted.
  double loss(const Real& output, const Targets<S>& targets, Real* gradient = nullptr) const {
    const Panel<S> o(output);
    Panel<S> d(output.rows(), gradient ? output.cols() : 0, std::numeric_limits<S>::quiet_NaN());
    const double value = subject.call("loss", [&] { return task->loss(o.read(), targets, d.whole()); });
    report.demand("memory", d.intact(), "loss wrote outside doutput");
    if (gradient) *gradient = d.read().template cast<double>();
    return value;
  }
  /// Adds to the metrics, `count` of them.
  std::vector<Ratio> measure(const Panel<S>& output, const Scored<S>& scored, Index first, Index columns,
                             std::size_t count) const {
    constexpr std::size_t margin = 8;
    const auto untouched = [](const Ratio& r) { return r.sum == guard_value && r.weight == guard_value; };
    std::vector<Ratio> memory(count + 2 * margin, Ratio{guard_value, guard_value});
    const std::span<Ratio> metrics = std::span(memory).subspan(margin, count);
    const Ratio before{1, 1};  // measure() adds
    std::ranges::fill(metrics, before);
    subject.call("measure",
                 [&] { task->measure(output.read(first, columns), scored.targets(first, columns), metrics); });
    report.demand("memory",
                  std::all_of(memory.begin(), memory.begin() + margin, untouched) &&
                      std::all_of(memory.end() - margin, memory.end(), untouched),
                  "measure wrote to more metrics than metrics() lists");
    for (Ratio& r : metrics) r.sum -= before.sum, r.weight -= before.weight;
    return {metrics.begin(), metrics.end()};
  }
  void trivial(Index t, std::span<S> output) const {
    Guarded<S> column{Index(output.size())};
    subject.call("trivial", [&] { task->trivial(t, column.span()); });
    report.demand("memory", column.intact(), "trivial wrote outside its output");
    std::ranges::copy(column.span(), output.begin());
  }

  const Subject& subject;
  CheckReport& report;
  std::unique_ptr<Task<S>> task;
  const TaskShape shape;
};

template <class S> void check_batches(const TaskProbe<S>& probe, CheckReport& report, std::uint64_t seed);
template <class S> void check_loss(const TaskProbe<S>& probe, CheckReport& report, std::uint64_t seed);
void check_baseline(const TaskProbe<double>& probe, CheckReport& report);

}  // namespace stiefel::conformance
