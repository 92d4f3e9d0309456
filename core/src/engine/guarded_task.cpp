#include "engine/guarded_task.hpp"

#include <fmt/format.h>

#include "host/plugin_faults.hpp"

namespace stiefel {

template <class S> void GuardedTask<S>::require(const std::string& fault) const {
  refuse_fault("task", task_.name, task_.file, fault);
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
  require(form_fault(form, shape_));
  return form;
}

template <class S> std::vector<Baseline> GuardedTask<S>::baselines() const {
  return task_.call("baselines", [&] { return task_->baselines(); });
}

template <class S> std::vector<Remark> GuardedTask<S>::remarks() const {
  return task_.call("remarks", [&] { return task_->remarks(); });
}

template <class S> std::string GuardedTask<S>::summary() const {
  return task_.call("summary", [&] { return task_->summary(); });
}

template <class S> bool GuardedReader<S>::next() {
  return reader_.call("next", [&] { return reader_->next(); });
}

template <class S> std::string GuardedReader<S>::name() const {
  return reader_.call("name", [&] { return reader_->name(); });
}

template <class S> bool GuardedReader<S>::read(Index steps, Batch<S>& batch) {
  if (!reader_.call("read", [&] { return reader_->read(steps, batch); })) return false;
  TaskShape shape = shape_;
  shape.steps = steps;
  const bool fits = batch.sequences() == 1 && batch.steps() <= steps;
  const std::string fault =
      fits ? batch_fault(batch, shape) : fmt::format("{} × {} steps", batch.sequences(), batch.steps());
  refuse_fault("task", reader_.name, reader_.file,
               fault.empty() ? fault : fmt::format("read({}) of its reader gives {}", steps, fault));
  return true;
}

template class GuardedTask<float>;
template class GuardedTask<double>;
template class GuardedReader<float>;
template class GuardedReader<double>;

}  // namespace stiefel
