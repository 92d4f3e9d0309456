// The threads of a run. Work is numbered; which thread takes which number never changes a result.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

class STIEFEL_API Workers {
 public:
  /// `threads` includes the thread that calls run(); 0 means one per core that this process may use.
  explicit Workers(int threads);
  ~Workers();
  int threads() const { return int(helpers_.size()) + 1; }
  /// Calls job(0) … job(count − 1), once each, and returns when all are done. Of exceptions, rethrows that of the
  /// lowest number.
  void run(int count, const std::function<void(int)>& job);

  /// While it exists, in_parallel() on the calling thread uses the threads of `workers`, or only this thread if it is
  /// null. They must be idle except for calls of run().
  class STIEFEL_API Lent {
   public:
    explicit Lent(Workers* workers);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    Workers* before_;
  };

  /// While it exists, in_parallel() on the calling thread runs the jobs one after the other, the last one first, for
  /// checks that their order does not matter.
  class STIEFEL_API ReversedJobs {
   public:
    ReversedJobs();
    ~ReversedJobs();
    ReversedJobs(const ReversedJobs&) = delete;
    ReversedJobs& operator=(const ReversedJobs&) = delete;
  };

 private:
  void help(std::stop_token stop);
  void work(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable_any wake_, done_;
  const std::function<void(int)>* job_ = nullptr;
  int next_ = 0, count_ = 0, running_ = 0;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::jthread> helpers_;
};

}  // namespace stiefel
