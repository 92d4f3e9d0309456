#include "host/plugin_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace stiefel {
namespace {

/// Whether a block may have this name, such as weight, A or activation.slope.
bool block_name(std::string_view name) {
  for (std::size_t first = 0;;) {
    const std::size_t dot = std::min(name.find('.', first), name.size());
    const std::string_view part = name.substr(first, dot - first);
    const bool capitals = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!plain_name(part) && !capitals) return false;
    if (dot == name.size()) return true;
    first = dot + 1;
  }
}

/// A fault in the sizes of a batch's arrays. Columns are t·sequences + b, or b if only the last step is scored.
template <class S> std::string room_fault(const Batch<S>& batch, const TaskShape& shape) {
  const Index columns = batch.sequences() * batch.steps(),
              scored = shape.readout == ReadoutKind::every ? columns : batch.sequences();
  const CMat<S> inputs = batch.inputs(), targets = batch.targets();
  const bool dense = shape.input == InputKind::dense, symbols = shape.input == InputKind::symbols;
  const bool fits = (!dense || (inputs.rows() == shape.input_size && inputs.cols() == columns)) &&
                    (!symbols || Index(batch.symbols().size()) == columns) && Index(batch.weights().size()) == scored &&
                    (shape.labels ? Index(batch.labels().size()) == scored
                                  : targets.rows() == shape.output_size && targets.cols() == scored);
  return fits ? "" : "fill() resized the batch for a shape other than that of shape()";
}

}  // namespace

void refuse_fault(std::string_view what, std::string_view name, const std::filesystem::path& file,
                  const std::string& fault) {
  if (!fault.empty())
    throw Error(fmt::format("the {} {} ({}) is wrong: {}; `stiefel check` tests it", what, name, file.string(), fault),
                Exit::plugin);
}

bool plain_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

std::string block_fault(const BlockSpec& b) {
  if (!block_name(b.name))
    return fmt::format("the block name `{}` must be [a-z0-9_]+ or capitals, with parts joined by dots", b.name);
  if (b.size < 0) return fmt::format("the size {} of block `{}` is negative", b.size, b.name);
  if ((b.rows != 0 || b.cols != 0) && b.rows * b.cols != b.size)
    return fmt::format("block `{}` is {} × {} but has {} numbers", b.name, b.rows, b.cols, b.size);
  const Index wanted = b.manifold == Manifold::unitary ? 2 * b.cols : b.cols;
  if (b.manifold != Manifold::flat && (b.rows != wanted || b.rows * b.cols != b.size))
    return fmt::format("block `{}` of {} × {} is not {}", b.name, b.rows, b.cols,
                       b.manifold == Manifold::unitary ? "a unitary matrix (2n × n)" : "an orthogonal matrix (n × n)");
  if (!(std::isfinite(b.rate_scale) && b.rate_scale > 0))
    return fmt::format("rate_scale {} of block `{}` must be above 0", b.rate_scale, b.name);
  return {};
}

template <class S> std::string rows_fault(const Cell<S>& cell) {
  const auto outside = [&](Index first, Index rows) {
    return first < 0 || rows < 1 || rows > cell.saved_rows() || first > cell.saved_rows() - rows;
  };
  if (cell.input_rows() < 1) return fmt::format("input_rows() is {}", cell.input_rows());
  if (outside(0, cell.input_rows())) return "saved_rows() is less than input_rows()";
  if (outside(cell.output_row(), cell.output_rows())) return "the output rows are not inside the saved rows";
  if (outside(cell.state_row(), cell.state_rows())) return "the state rows are not inside the saved rows";
  if (cell.delta_rows() < cell.input_rows()) return "delta_rows() is less than input_rows()";
  return {};
}

std::string maps_fault(const std::vector<MapSpec>& maps) {
  std::set<std::string> names;
  for (const MapSpec& map : maps) {
    if (map.rows < 1 || map.cols < 1) return fmt::format("the map `{}` is {} × {}", map.name, map.rows, map.cols);
    if (!plain_name(map.name) && !(map.name.empty() && maps.size() == 1))
      return fmt::format("the map name `{}` must be [a-z0-9_]+", map.name);
    if (!names.insert(map.name).second) return fmt::format("two maps are named `{}`", map.name);
  }
  return {};
}

std::string shape_fault(const TaskShape& shape) {
  if (shape.steps < 1) return fmt::format("steps is {}", shape.steps);
  if (shape.output_size < 1) return fmt::format("output_size is {}", shape.output_size);
  if (shape.input != InputKind::none && shape.input_size < 1) return fmt::format("input_size is {}", shape.input_size);
  return {};
}

std::string metrics_fault(const std::vector<Metric>& metrics) {
  std::set<std::string> names;
  for (const Metric& metric : metrics)
    if (!plain_name(metric.name) || metric.name == "loss" || !names.insert(metric.name).second)
      return fmt::format("`{}` is not a valid metric name: it must be [a-z0-9_]+, unique, and not `loss`", metric.name);
    else if (metric.parts < 1 || (metric.parts > 1 && !metric.value && !metric.by_step))
      return fmt::format("the metric `{}` has {} parts and {}function for its value", metric.name, metric.parts,
                         metric.value ? "a " : "no ");
    else if (metric.of_sequence && metric.parts > 1)
      return fmt::format("the metric `{}` of sequences has {} parts: it must have one", metric.name, metric.parts);
  return {};
}

std::string form_fault(const DataForm& form, const TaskShape& shape) {
  const auto wrong = [](std::size_t size, Index wanted) { return size != 0 && Index(size) != wanted; };
  for (const std::size_t size : {form.inputs.size(), form.input_mean.size(), form.input_scale.size()})
    if (wrong(size, shape.input_size)) return "form() describes another number of inputs than shape()";
  for (const std::size_t size : {form.outputs.size(), form.output_mean.size(), form.output_scale.size()})
    if (wrong(size, shape.output_size)) return "form() describes another number of outputs than shape()";
  if (form.input_mean.size() != form.input_scale.size() || form.output_mean.size() != form.output_scale.size())
    return "form() has a mean without a scale, or a scale without a mean";
  for (const auto* numbers : {&form.input_mean, &form.output_mean})
    for (const double x : *numbers)
      if (!std::isfinite(x)) return fmt::format("form() has the mean {}", x);
  for (const auto* numbers : {&form.input_scale, &form.output_scale})
    for (const double x : *numbers)
      if (!std::isfinite(x) || !(x > 0)) return fmt::format("form() has the scale {}: it must be above 0", x);
  return {};
}

template <class S> std::string batch_fault(const Batch<S>& batch, const TaskShape& shape) {
  if (batch.sequences() < 1) return "fill() left a batch without sequences";
  if (batch.steps() > shape.steps)
    return fmt::format("a batch has {} steps, but shape() says {}", batch.steps(), shape.steps);
  if (std::string fault = room_fault(batch, shape); !fault.empty()) return fault;
  for (Index b = 0; b < batch.sequences(); ++b) {
    const Index length = batch.length(b);
    if (length < 1 || length > batch.steps())
      return fmt::format("sequence {} has length {} in a batch of {} steps", b, length, batch.steps());
    for (Index t = 0; t < length; ++t) {
      const auto place = [&] { return fmt::format("at step {} of sequence {}", t, b); };
      if (shape.input == InputKind::symbols)
        if (const std::int32_t symbol = batch.symbols()[t * batch.sequences() + b];
            symbol < -1 || symbol >= shape.input_size)
          return fmt::format("symbol {} {} is invalid: it must be from −1 to {}", symbol, place(),
                             shape.input_size - 1);
      if (shape.readout == ReadoutKind::last && t < length - 1) continue;
      const Index column = batch.scored(t, b);
      const S weight = batch.weights()[column];
      if (!std::isfinite(weight) || weight < 0)
        return fmt::format("weight {} {} is invalid: it must be finite and ≥ 0", weight, place());
      if (shape.labels && weight > 0)
        if (const std::int32_t label = batch.labels()[column]; label < 0 || label >= shape.output_size)
          return fmt::format("label {} {} is invalid: it must be from 0 to {}", label, place(), shape.output_size - 1);
    }
  }
  return {};
}

template <class S> std::string broken_number(const Batch<S>& batch, const TaskShape& shape) {
  for (Index b = 0; b < batch.sequences(); ++b)
    for (Index t = 0; t < batch.length(b); ++t) {
      const auto broken = [&](const char* what, const auto& numbers) -> std::string {
        for (Index i = 0; i < numbers.size(); ++i)
          if (!std::isfinite(numbers[i]))
            return fmt::format("{} {} at step {} of sequence {} is {}", what, i, t, b, numbers[i]);
        return {};
      };
      std::string found;
      if (shape.input == InputKind::dense) found = broken("input", batch.inputs().col(t * batch.sequences() + b));
      const bool scored = (shape.readout == ReadoutKind::every || t == batch.length(b) - 1) &&
                          batch.weights()[std::size_t(batch.scored(t, b))] > 0;
      if (found.empty() && scored && !shape.labels) found = broken("target", batch.targets().col(batch.scored(t, b)));
      if (!found.empty()) return found;
    }
  return {};
}

template std::string rows_fault(const Cell<float>&);
template std::string rows_fault(const Cell<double>&);
template std::string batch_fault(const Batch<float>&, const TaskShape&);
template std::string batch_fault(const Batch<double>&, const TaskShape&);
template std::string broken_number(const Batch<float>&, const TaskShape&);
template std::string broken_number(const Batch<double>&, const TaskShape&);

}  // namespace stiefel
