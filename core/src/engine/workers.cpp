// A pool that hands out numbered jobs; the caller works too. Denormals are off in every worker.
#include "engine/workers.hpp"

#include <stiefel/denormals.hpp>
#include <stiefel/parallel.hpp>
#include <utility>

#include "base/machine.hpp"

namespace stiefel {
namespace {

thread_local Workers* lent = nullptr;
thread_local bool reversed = false;

}  // namespace

Workers::Workers(int threads) {
  if (threads <= 0) threads = usable_cores();
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this](std::stop_token stop) { help(stop); });
}

Workers::~Workers() {
  for (auto& helper : helpers_) helper.request_stop();
  wake_.notify_all();
}

void Workers::help(std::stop_token stop) {
  DenormalsOff denormals;
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return next_ < count_; })) work(lock);
}

void Workers::work(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const int mine = next_++;
    ++running_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*job_)(mine);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failures_[mine] = failure;
    if (--running_ == 0 && next_ >= count_) done_.notify_all();
  }
}

void Workers::run(int count, const std::function<void(int)>& job) {
  DenormalsOff denormals;
  if (count == 1) return job(0);
  Lent busy(nullptr);
  std::unique_lock lock(mutex_);
  failures_.assign(count, nullptr);
  job_ = &job;
  next_ = 0;
  count_ = count;
  wake_.notify_all();
  work(lock);
  done_.wait(lock, [this] { return running_ == 0 && next_ >= count_; });
  count_ = next_ = 0;
  for (auto& failure : failures_)
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
}

Workers::Lent::Lent(Workers* workers) : before_(std::exchange(lent, workers)) {}
Workers::Lent::~Lent() { lent = before_; }

Workers::ReversedJobs::ReversedJobs() { reversed = true; }
Workers::ReversedJobs::~ReversedJobs() { reversed = false; }

void in_parallel(Index count, const std::function<void(Index)>& job) {
  DenormalsOff denormals;
  if (reversed) {
    while (count > 0) job(--count);
    return;
  }
  if (lent && lent->threads() > 1) return lent->run(int(count), [&](int i) { job(i); });
  for (Index i = 0; i < count; ++i) job(i);
}

}  // namespace stiefel
