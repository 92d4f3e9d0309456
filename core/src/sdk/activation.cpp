// The activations; their loops are in kernel/activation_kernels.cpp.
//
//   identity    h = a                           da = dh
//   tanh        h = tanh a                      da = dh (1 − h²)
//   relu        h = max(a, 0)                   da = dh [h > 0]
//   leaky_relu  h = max(a, 0) + s·min(a, 0)     da = dh (1 or s)
//   prelu       the same with a learned s       da = dh (1 or s),   ds = Σ dh·min(a, 0)
//   oplu        a pair (a, b) becomes (max, min); the pullback is the same permutation, so norms are preserved both
//               ways
//   modrelu     of real numbers h = sign(a)·max(|a| + b, 0), with b + ε for b in the forms eu (ε = 0.01) and goru
//               (0.001): da = dh·[h ≠ 0], db = Σ sign(h)·dh, sign(0) = 0; where ε > −b, h jumps at a = 0
//
// At 0, relu and leaky_relu have the derivative from the left, 0 or s. No column is treated differently from
// another.
#include <stiefel/activation.hpp>

#include <algorithm>

#include <stiefel/vector_math.hpp>
#include "sdk/kernel/activation_kernels.hpp"

namespace stiefel {

void ActivationOptions::describe(Schema& s) {
  s.shorthand("kind");
  s.field("kind", kind, "activation").one_of({"identity", "tanh", "relu", "leaky_relu", "prelu", "oplu", "modrelu"});
  const bool prelu = kind == "prelu", modrelu = kind == "modrelu";
  s.field("slope", slope, "leaky_relu: slope below zero; prelu: its initial value")
      .only_if(kind == "leaky_relu" || prelu, "`kind: leaky_relu` and `prelu`");
  s.field("trainable", trainable, "prelu: whether the slope is learned").only_if(prelu, "`kind: prelu`");
  s.field("shared", shared, "prelu: one slope for all rows, or one for each").only_if(prelu, "`kind: prelu`");
  s.field("pairing", pairing, "oplu: pairs of rows (i, i + n/2) or (2i, 2i + 1)")
      .one_of({"halves", "adjacent"})
      .only_if(kind == "oplu", "`kind: oplu`");
  s.field("form", form, "modrelu: exact, or as in the released code of a paper")
      .one_of({"exact", "arj", "wis", "eu", "goru", "squared"})
      .only_if(modrelu, "`kind: modrelu`");
  s.field("epsilon", epsilon,
          "modrelu: number in the forms arj, wis, eu and goru; 0: that of the code, 1e-5, 1e-5, 0.01 and 0.001")
      .at_least(0)
      .only_if(modrelu, "`kind: modrelu`");
  s.field("pairs", pairs, "modrelu: rows i and i + n/2 are one complex number although the state is real")
      .only_if(modrelu, "`kind: modrelu`");
  s.field("bias_init", bias_init, "modrelu: initial bias, constant and uniform of size bias_scale")
      .one_of({"zero", "constant", "uniform"})
      .only_if(modrelu, "`kind: modrelu`");
  s.field("bias_scale", bias_scale, "modrelu: the constant, or the bound of the uniform distribution")
      .only_if(modrelu && bias_init != "zero", "`kind: modrelu` with `bias_init: constant` and `uniform`");
}

namespace {

template <class S> class Identity final : public Activation<S> {
 public:
  bool keeps_input() const override { return false; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override {
    if (h.data() != a.data()) h = a;
  }
  void backward(CMat<S>, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    if (da.data() != dh.data()) da = dh;
  }
};

/// An activation whose loops are those of one SIMD target.
template <class S> class Vectorised : public Activation<S> {
 protected:
  const ActivationKernels<S>& kernels_ = activation_kernels<S>();
};

template <class S> class Tanh final : public Vectorised<S> {
 public:
  bool keeps_input() const override { return false; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override {
    const auto rows = std::size_t(a.rows());
    for (Index j = 0; j < a.cols(); ++j) vector_tanh<S>({a.col(j).data(), rows}, {h.col(j).data(), rows});
  }
  void backward(CMat<S>, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    this->kernels_.tanh_pullback(h, dh, da);
  }
};

template <class S> class Relu final : public Vectorised<S> {
 public:
  bool keeps_input() const override { return false; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override { this->kernels_.relu(a, h); }
  void backward(CMat<S>, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    this->kernels_.relu_pullback(h, dh, da);
  }
};

/// The sign of h is that of a only for a positive slope, so a is kept otherwise.
template <class S> class LeakyRelu final : public Vectorised<S> {
 public:
  explicit LeakyRelu(double slope) : slope_(S(slope)) {}
  bool keeps_input() const override { return !(slope_ > 0); }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override { this->kernels_.leaky(a, h, {&slope_, 1}); }
  void backward(CMat<S> a, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    this->kernels_.leaky_pullback(keeps_input() ? a : h, dh, da, {&slope_, 1});
  }

 private:
  S slope_;
};

template <class S> class Prelu final : public Vectorised<S> {
 public:
  Prelu(const ActivationOptions& options, Index rows) : slope_(options.slope), slopes_(options.shared ? 1 : rows) {}
  std::vector<BlockSpec> blocks() const override { return {{"slope", slopes_}}; }
  void initialise(Blocks<S> theta, Rng&) const override { std::ranges::fill(theta[0], S(slope_)); }
  bool keeps_input() const override { return true; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S> theta) const override { this->kernels_.leaky(a, h, theta[0]); }
  void backward(CMat<S> a, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S> theta, Blocks<S> dtheta) const override {
    if (dtheta.count() > 0) this->kernels_.add_slope_gradient(a, dh, dtheta[0]);
    this->kernels_.leaky_pullback(a, dh, da, theta[0]);
  }

 private:
  double slope_;
  Index slopes_;
};

template <class S> class Oplu final : public Vectorised<S> {
 public:
  Oplu(bool halves, Index rows) : step_(halves ? 1 : 2), distance_(halves ? rows / 2 : 1) {
    if (rows % 2 != 0)
      throw Error("oplu takes rows in pairs and needs an even number of rows, not " + std::to_string(rows) +
                  "; change `hidden` by one");
  }
  bool keeps_input() const override { return true; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override { this->kernels_.oplu(a, h, step_, distance_); }
  void backward(CMat<S> a, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    this->kernels_.oplu_pullback(a, dh, da, step_, distance_);
  }

 private:
  Index step_, distance_;
};

/// modReLU: its bias, one number for each row or pair of rows.
template <class S> class Modrelu : public Vectorised<S> {
 public:
  Modrelu(const ActivationOptions& options, Index biases) : options_(options), biases_(biases) {}
  std::vector<BlockSpec> blocks() const override { return {{"bias", biases_}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& b : theta[0]) {
      if (options_.bias_init == "constant")
        b = S(options_.bias_scale);
      else if (options_.bias_init == "uniform")
        b = S(rng.uniform(-std::abs(options_.bias_scale), std::abs(options_.bias_scale)));
      else
        b = 0;
    }
  }

 protected:
  static S* gradient(Blocks<S> dtheta) { return dtheta.count() > 0 ? dtheta[0].data() : nullptr; }
  S epsilon(double released) const { return S(options_.epsilon > 0 ? options_.epsilon : released); }

  ActivationOptions options_;
  Index biases_;
};

/// h tells all that the pullback needs: where the entry lives, h has the sign of a.
template <class S> class SignModrelu final : public Modrelu<S> {
 public:
  SignModrelu(const ActivationOptions& options, Index rows) : Modrelu<S>(options, rows) {
    if (options.form == "eu") shift_ = this->epsilon(0.01);
    if (options.form == "goru") shift_ = this->epsilon(0.001);
  }
  bool keeps_input() const override { return false; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S> theta) const override {
    this->kernels_.sign_modrelu(a, h, theta[0].data(), shift_);
  }
  void backward(CMat<S>, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S> dtheta) const override {
    this->kernels_.sign_modrelu_pullback(h, dh, da, this->gradient(dtheta));
  }

 private:
  S shift_ = 0;
};

PairForm pair_form(const std::string& name) {
  if (name == "arj") return PairForm::arj;
  if (name == "wis") return PairForm::wis;
  if (name == "eu") return PairForm::eu;
  return name == "squared" ? PairForm::squared : PairForm::exact;
}

/// Rows i and i + n/2 are one complex number.
template <class S> class PairModrelu final : public Modrelu<S> {
 public:
  PairModrelu(const ActivationOptions& options, Index rows)
      : Modrelu<S>(options, rows / 2),
        form_(pair_form(options.form)),
        epsilon_(this->epsilon(form_ == PairForm::eu ? 0.01 : 1e-5)) {}
  bool keeps_input() const override { return true; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S> theta) const override {
    this->kernels_.pair_modrelu[std::size_t(form_)](a, h, theta[0].data(), epsilon_);
  }
  void backward(CMat<S> a, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S> theta, Blocks<S> dtheta) const override {
    this->kernels_.pair_modrelu_pullback[std::size_t(form_)](a, dh, da, theta[0].data(), epsilon_,
                                                             this->gradient(dtheta));
  }

 private:
  PairForm form_;
  S epsilon_;
};

template <class S>
std::unique_ptr<Activation<S>> make_modrelu(const ActivationOptions& options, Index rows, bool complex) {
  const bool pairs = complex || options.pairs || options.form == "squared";
  if (pairs && rows % 2 != 0)
    throw Error("modrelu takes rows i and i + n/2 as one complex number and needs an even number of rows, not " +
                std::to_string(rows) + "; change `hidden` by one");
  if (pairs && options.form == "goru")
    throw Error("the form goru of modrelu is for real states; choose exact, arj, wis or eu");
  if (!pairs && (options.form == "arj" || options.form == "wis"))
    throw Error("the form " + options.form +
                " of modrelu is for complex states; choose exact, eu, goru or squared, or set `pairs: true`");
  if (pairs) return std::make_unique<PairModrelu<S>>(options, rows);
  return std::make_unique<SignModrelu<S>>(options, rows);
}

}  // namespace

template <class S>
std::unique_ptr<Activation<S>> Activation<S>::make(const ActivationOptions& options, Index rows, bool complex) {
  const std::string& kind = options.kind;
  if (kind == "identity") return std::make_unique<Identity<S>>();
  if (kind == "tanh") return std::make_unique<Tanh<S>>();
  if (kind == "relu") return std::make_unique<Relu<S>>();
  if (kind == "prelu" && options.trainable) return std::make_unique<Prelu<S>>(options, rows);
  if (kind == "leaky_relu" || kind == "prelu") return std::make_unique<LeakyRelu<S>>(options.slope);
  if (kind == "oplu") return std::make_unique<Oplu<S>>(options.pairing == "halves", rows);
  if (kind == "modrelu") return make_modrelu<S>(options, rows, complex);
  throw Error("there is no activation `" + kind + "`; choose identity, tanh, relu, leaky_relu, prelu, oplu or modrelu");
}

template <class S> Activation<S>::~Activation() = default;
template <class S> std::vector<BlockSpec> Activation<S>::blocks() const { return {}; }
template <class S> void Activation<S>::initialise(Blocks<S>, Rng&) const {}

template class Activation<float>;
template class Activation<double>;

}  // namespace stiefel
