#include "engine/guarded_task.hpp"

#include <fmt/format.h>

#include "host/plugin_faults.hpp"

namespace stiefel {

template <class S> void GuardedTask<S>::require(const std::string& fault) const {
  if (!fault.empty())
    throw Error(
        fmt::format("the task {} ({}) is wrong: {}; `stiefel check` tests it", task_.name, task_.file.string(), fault),
        Exit::plugin);
}

template <class S> GuardedTask<S>::GuardedTask(Plugged<Task<S>> task)
    : Task<S>(task->context()), task_(std::move(task)) {
  shape_ = task_.call("shape", [&] { return task_->shape(); });
  metrics_ = task_.call("metrics", [&] { return task_->metrics(); });
  require(shape_fault(shape_));
  require(metrics_fault(metrics_));
}

template <class S> Index GuardedTask<S>::batches(Split split) const {
  const Index count = task_.call("batches", [&] { return task_->batches(split); });
  require(count < 0 ? fmt::format("batches({}) is {}", name_of(split), count) : "");
  return count;
}

template <class S> void GuardedTask<S>::fill(Split split, Index index, Batch<S>& batch) const {
  task_.call("fill", [&] { task_->fill(split, index, batch); });
  const std::string fault = batch_fault(batch, shape_);
  require(fault.empty() ? fault : fmt::format("in batch {} of {}, {}", index, name_of(split), fault));
}

template <class S> double GuardedTask<S>::loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const {
  return task_.call("loss", [&] { return task_->loss(output, targets, doutput); });
}

template <class S>
void GuardedTask<S>::measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const {
  task_.call("measure", [&] { task_->measure(output, targets, metrics); });
}

template <class S> double GuardedTask<S>::baseline() const {
  return task_.call("baseline", [&] { return task_->baseline(); });
}

template <class S> void GuardedTask<S>::trivial(Index t, std::span<S> output) const {
  task_.call("trivial", [&] { task_->trivial(t, output); });
}

template <class S> std::vector<DataFile> GuardedTask<S>::files() const {
  return task_.call("files", [&] { return task_->files(); });
}

template <class S> bool GuardedTask<S>::reports() const {
  return task_.call("reports", [&] { return task_->reports(); });
}

template <class S>
void GuardedTask<S>::report(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const {
  task_.call("report", [&] { task_->report(index, batch, outputs, outcome); });
}

template <class S> std::vector<std::string> GuardedTask<S>::alphabet() const {
  return task_.call("alphabet", [&] { return task_->alphabet(); });
}

template <class S> DataForm GuardedTask<S>::form() const {
  const DataForm form = task_.call("form", [&] { return task_->form(); });
  const auto fits = [](std::size_t size, Index wanted) { return size == 0 || Index(size) == wanted; };
  for (const std::size_t size : {form.inputs.size(), form.input_mean.size(), form.input_scale.size()})
    require(fits(size, shape_.input_size) ? "" : "form() describes another number of inputs than shape()");
  for (const std::size_t size : {form.outputs.size(), form.output_mean.size(), form.output_scale.size()})
    require(fits(size, shape_.output_size) ? "" : "form() describes another number of outputs than shape()");
  return form;
}

template <class S> std::unique_ptr<SequenceReader<S>> GuardedTask<S>::open(const std::string& file) const {
  return task_.call("open", [&] { return task_->open(file); });
}

template class GuardedTask<float>;
template class GuardedTask<double>;

}  // namespace stiefel
