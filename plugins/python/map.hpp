// A map whose matrix and pullback are computed in Python. Parts of its memory: θ, dθ, W, dW, state.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>

#include "python/object.hpp"
#include "python/options.hpp"

namespace stiefel::python {

template <class S> class Map final : public Dense<S> {
 public:
  using Options = python::Options<Role::parametrisation>;

  static bool complex_pairs(const Options& options) { return options.worker && options.worker->complex(); }

  Map(const Options& options, Shape shape) : Dense<S>(shape) {
    Call call = creation<S>(*options.worker);
    call.add(shape.rows);
    call.add(shape.cols);
    options.add_to(call);
    call.exchange();
    object_.emplace(options.worker, call);
    for (Index count = call.integer(); count > 0; --count) {
      BlockSpec block;
      block.name = call.text();
      const Index rows = call.integer(), cols = call.integer();
      block.size = cols > 0 ? rows * cols : rows;
      if (cols > 0) block.rows = rows, block.cols = cols;
      size_ += block.size;
      blocks_.push_back(std::move(block));
    }
    const std::string claim = call.text();
    const double low = call.number(), high = call.number();
    claim_ = claim == "orthogonal" ? Claim{Claim::orthogonal}
             : claim == "bounded"  ? Claim{Claim::bounded, low, high}
                                   : Claim{};
    penalises_ = call.integer() != 0;
    projects_ = call.integer() != 0;
    records_ = call.integer() != 0;
    object_->read_state(call);
    object_->read_memory(call);
  }

  std::vector<BlockSpec> blocks() const override { return blocks_; }
  Claim claim() const override { return claim_; }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    const Call call = object_->call("initial", Index(rng.bits64() >> 1));
    copy_from(theta_part, theta);
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    Call call = give(theta, "matrix");
    call.exchange();
    W = as_matrix(std::span<const S>(object_->template part<S>(W_part, W.size())), W.rows(), W.cols());
  }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    Call call = object_->begin("pullback");
    as_matrix(object_->template part<S>(dW_part, dW.size()), dW.rows(), dW.cols()) = dW;
    call.exchange();
    add_gradient(dtheta);
  }

  double penalty(CBlocks<S> theta, Blocks<S> dtheta) override {
    if (!penalises_) return 0;
    Call call = give(theta, "penalty");
    call.exchange();
    add_gradient(dtheta);
    return call.number();
  }
  void after_step(Blocks<S> theta) override {
    if (!projects_) return;
    Call call = give(theta, "after_step");
    call.exchange();
    copy_from(theta_part, theta);
  }
  void record(Recorder& recorder) const override {
    if (!records_) return;
    Call call = object_->call("record");
    for (Index count = call.integer(); count > 0; --count) {
      const std::string name = call.text();
      recorder.scalar(name, call.number());
    }
  }
  void serialise(Archive& archive) override { object_->serialise(archive); }

 private:
  enum Part : std::size_t { theta_part, dtheta_part, W_part, dW_part };

  /// A request about these parameters, to be finished by exchange().
  Call give(CBlocks<S> theta, std::string_view verb) const {
    Call call = object_->begin(verb);
    S* to = object_->template part<S>(theta_part, size_).data();
    for (Index i = 0; i < theta.count(); ++i) to = std::ranges::copy(theta[i], to).out;
    return call;
  }
  void copy_from(Part part, Blocks<S> blocks) const {
    const S* from = object_->template part<S>(part, size_).data();
    for (Index i = 0; i < blocks.count(); ++i) {
      std::copy_n(from, blocks[i].size(), blocks[i].data());
      from += blocks[i].size();
    }
  }
  void add_gradient(Blocks<S> dtheta) const {
    const S* from = object_->template part<S>(dtheta_part, size_).data();
    for (Index i = 0; i < dtheta.count(); ++i)
      for (S& x : dtheta[i]) x += *from++;
  }

  std::optional<Object> object_;
  std::vector<BlockSpec> blocks_;
  Index size_ = 0;
  Claim claim_;
  bool penalises_ = false, projects_ = false, records_ = false;
};

}  // namespace stiefel::python
