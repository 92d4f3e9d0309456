#include "engine/guarded_task.hpp"

#include <fmt/format.h>

#include "host/plugin_call.hpp"
#include "host/plugin_faults.hpp"

namespace stiefel {

template <class S> template <class F> auto GuardedTask<S>::guard(const char* verb, F&& call) const {
  return guarded(verb, plugin_, file_, std::forward<F>(call));
}

template <class S> void GuardedTask<S>::require(const std::string& fault) const {
  if (!fault.empty())
    throw Error(fmt::format("the task {} ({}) is wrong: {}; `stiefel check` tests it", plugin_, file_.string(), fault), Exit::plugin);
}

template <class S> GuardedTask<S>::GuardedTask(std::unique_ptr<Task<S>> task, std::string plugin, std::filesystem::path file)
    : Task<S>(task->context()), task_(std::move(task)), plugin_(std::move(plugin)), file_(std::move(file)) {
  shape_ = guard("shape", [&] { return task_->shape(); });
  metrics_ = guard("metrics", [&] { return task_->metrics(); });
  require(shape_fault(shape_));
  require(metrics_fault(metrics_));
}

template <class S> Index GuardedTask<S>::batches(Split split) const {
  const Index count = guard("batches", [&] { return task_->batches(split); });
  require(count < 0 ? fmt::format("batches({}) is {}", name_of(split), count) : "");
  return count;
}

template <class S> void GuardedTask<S>::fill(Split split, Index index, Batch<S>& batch) const {
  guard("fill", [&] { task_->fill(split, index, batch); });
  const std::string fault = batch_fault(batch, shape_);
  require(fault.empty() ? fault : fmt::format("in batch {} of {}, {}", index, name_of(split), fault));
}

template <class S> double GuardedTask<S>::loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const {
  return guard("loss", [&] { return task_->loss(output, targets, doutput); });
}

template <class S> void GuardedTask<S>::measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const {
  guard("measure", [&] { task_->measure(output, targets, metrics); });
}

template <class S> double GuardedTask<S>::baseline() const {
  return guard("baseline", [&] { return task_->baseline(); });
}

template <class S> void GuardedTask<S>::trivial(Index t, std::span<S> output) const {
  guard("trivial", [&] { task_->trivial(t, output); });
}

template <class S> std::vector<DataFile> GuardedTask<S>::files() const {
  return guard("files", [&] { return task_->files(); });
}

template <class S> bool GuardedTask<S>::reports() const {
  return guard("reports", [&] { return task_->reports(); });
}

template <class S> void GuardedTask<S>::report(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const {
  guard("report", [&] { task_->report(index, batch, outputs, outcome); });
}

template <class S> std::vector<std::string> GuardedTask<S>::alphabet() const {
  return guard("alphabet", [&] { return task_->alphabet(); });
}

template class GuardedTask<float>;
template class GuardedTask<double>;

}  // namespace stiefel
