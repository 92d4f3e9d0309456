// An optimizer whose steps are made in Python. Parts of its memory: θ and gradient of each block in turn, state.
#pragma once

#include <algorithm>
#include <optional>

#include "python/object.hpp"
#include "python/options.hpp"

namespace stiefel::python {

template <class S> class Optimizer final : public stiefel::Optimizer<S> {
 public:
  using Options = python::Options<Role::optimizer>;

  explicit Optimizer(const Options& options) {
    Call call = creation<S>(*options.worker);
    options.add_to(call);
    call.exchange();
    object_.emplace(options.worker, call);
    decouples_ = call.integer() != 0;
  }

  bool decouples() const override { return decouples_; }
  void attach(const std::vector<BlockSpec>& blocks) override {
    Call call = object_->begin("attach");
    for (const BlockSpec& block : blocks) {
      call.add(block.name);
      call.add(block.cols > 0 ? block.rows : block.size);
      call.add(block.cols);
    }
    call.exchange();
    object_->read_state(call);
    object_->read_memory(call);
  }
  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    Call call = object_->begin("step");
    call.add(block);
    call.add(rate);
    const auto part = [&](Index k) {
      return object_->template part<S>(std::size_t(2 * block + k), Index(theta.size()));
    };
    std::ranges::copy(theta, part(0).begin());
    std::ranges::copy(gradient, part(1).begin());
    call.exchange();
    std::ranges::copy(part(0), theta.begin());
  }
  void serialise(Archive& archive) override { object_->serialise(archive); }

 private:
  std::optional<Object> object_;
  bool decouples_ = false;
};

}  // namespace stiefel::python
