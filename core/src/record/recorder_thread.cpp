// A bounded queue of calls to the ResultWriter, which one thread makes in order.
#include "record/recorder_thread.hpp"

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <stiefel/error.hpp>

#include "record/writer.hpp"

namespace stiefel {

RecorderThread::RecorderThread(const std::filesystem::path& run_directory, RunHeader header,
                               std::optional<RowCounts> kept, std::size_t capacity)
    : capacity_(capacity), kept_(kept.value_or(RowCounts())) {
  STIEFEL_ASSERT(capacity_ > 0);
  auto writer = std::make_unique<ResultWriter>(run_directory, std::move(header), std::move(kept));
  continued_ = writer->groups();
  thread_ = std::thread([this, writer = std::move(writer)] { work(*writer); });
}

RecorderThread::~RecorderThread() { stop(true); }

void RecorderThread::work(ResultWriter& writer) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Command command = std::move(queue_.front());
    queue_.pop_front();
    queued_ -= command.bytes;
    busy_ = true;
    changed_.notify_all();
    lock.unlock();
    std::exception_ptr failure;
    try {
      command.work(writer);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure) {
      failure_ = failure;
      queue_.clear();
      queued_ = 0;
    }
    changed_.notify_all();
  }
}

void RecorderThread::rethrow(std::unique_lock<std::mutex>& lock) {
  if (!failure_) return;
  const std::exception_ptr failure = failure_;
  lock.unlock();
  std::rethrow_exception(failure);
}

void RecorderThread::push(Command command) {
  if (capacity_ == 0) return;
  std::unique_lock lock(mutex_);
  STIEFEL_ASSERT(!stopping_);
  changed_.wait(lock, [&] {
    return failure_ || (queue_.size() < capacity_ && (queue_.empty() || queued_ + command.bytes <= most_queued));
  });
  rethrow(lock);
  if (!command.name.empty()) leave_out_queued(command.name);
  queued_ += command.bytes;
  queue_.push_back(std::move(command));
  changed_.notify_all();
}

void RecorderThread::leave_out_queued(const std::string& name) {
  const auto is_barrier = [](const Command& command) { return command.is_call && command.name.empty(); };
  for (auto queued = queue_.rbegin(); queued != queue_.rend() && !is_barrier(*queued); ++queued)
    if (queued->name == name) {
      calls_ -= queued->is_call;
      queue_.erase(std::next(queued).base());
      return;
    }
}

void RecorderThread::before_replacing(std::function<void(const std::filesystem::path&)> call) {
  push({[call = std::move(call)](ResultWriter& writer) { writer.before_replacing(call); }});
}

int RecorderThread::define(Table table, bool grows) {
  check(table);  // here, so that the caller who chose an invalid name gets the Error
  DefinedTable& defined = tables_.emplace_back();
  defined.group = table.group;
  if (const auto kept = kept_.find(table.group); kept != kept_.end()) defined.rows = kept->second;
  if (const auto found = continued_.find(table.group); found != continued_.end()) defined.last = found->second;
  push({[table = std::move(table), grows](ResultWriter& writer) { writer.define(table, grows); }});
  return int(tables_.size()) - 1;
}

void RecorderThread::remove(std::string group) {
  push({[group = std::move(group)](ResultWriter& writer) { writer.remove(group); }});
}

void RecorderThread::append(int table, double row, std::span<const double> values) {
  push({[table, row, copy = std::vector<double>(values.begin(), values.end())](ResultWriter& writer) {
          writer.append(table, row, copy);
        },
        "", values.size_bytes()});
  unpublished_ += values.size_bytes();
  ++tables_[std::size_t(table)].rows;
  tables_[std::size_t(table)].last = row;
}

RowCounts RecorderThread::rows() const {
  RowCounts counts;
  for (const DefinedTable& table : tables_) counts[table.group] = table.rows;
  return counts;
}

void RecorderThread::publish(std::int64_t committed_step, Status status, std::function<void()> before) {
  push({[committed_step, status = std::move(status), before = std::move(before)](ResultWriter& writer) {
          if (before) before();
          writer.publish(committed_step, status);
        },
        "publish"});
  unpublished_ = 0;
}

void RecorderThread::call(std::function<void()> work, const std::string& name) {
  if (capacity_ == 0) return;
  {
    std::unique_lock lock(mutex_);
    if (!name.empty()) leave_out_queued(name);
    changed_.wait(lock, [&] { return failure_ || calls_ < 2; });
    ++calls_;
  }
  push({[this, work = std::move(work)](ResultWriter&) {
          work();
          const std::lock_guard lock(mutex_);
          --calls_;
        },
        name, 0, true});
}

void RecorderThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || (queue_.empty() && !busy_); });
  rethrow(lock);
}

void RecorderThread::finish(std::int64_t committed_step, Status status) {
  publish(committed_step, std::move(status));
  stop(false);
  std::unique_lock lock(mutex_);
  rethrow(lock);
}

void RecorderThread::stop(bool drop_queued) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (drop_queued) queue_.clear(), queued_ = 0;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace stiefel
