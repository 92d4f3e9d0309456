/// A parametrisation: a linear operator with parameters, the recurrent map of a cell.
///
/// W(θ) is rows × cols and acts on columns. Between two refresh() calls W is constant, and the implementation must
/// satisfy three identities, which `stiefel check` tests:
///
///   ⟨apply(X), Y⟩ = ⟨X, apply_adjoint(Y)⟩
///   finish(Σ accumulate(X, dY)): dθ += ∂⟨dY, W(θ) X⟩ / ∂θ
///   accumulate over all columns = sum of accumulate over any parts of them
///
/// Complex maps: a complex vector of n entries is stored as 2n real rows, Re over Im; W = A + iB acts as [[A, −B], [B,
/// A]] (Mhammedi et al. 2017, section 3), and rows(), cols() count real rows.
///
/// Constructors throw stiefel::Error for options that do not fit the shape. The runtime adds the plugin's name to any
/// exception except Error (Exit::data), which names the file.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include <stiefel/archive.hpp>
#include <stiefel/error.hpp>
#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/random.hpp>
#include <stiefel/recorder.hpp>

namespace stiefel {

/// What an optimizer may do with a block. orthogonal: an n × n matrix M with MᵀM = I. unitary: 2n × n, Re over Im, MᴴM
/// = I.
enum class Manifold { flat, orthogonal, unitary };

/// A block of parameters: `size` numbers, seen as rows × cols by columns (0 × 0 means size × 1).
struct BlockSpec {
  std::string name;  ///< [a-z0-9_]+, or the upper-case letters of the paper; dots may join parts
  Index size = 0;
  Index rows = 0, cols = 0;
  Manifold manifold = Manifold::flat;
  double rate_scale = 1;  ///< the optimizer's rate is multiplied by it, e.g. 1/(2m) for a spectral margin
  /// after_step() restores the norm of the block, as for signs, unit columns, or a matrix that is projected to a group;
  /// weight decay leaves it alone.
  bool constant_norm = false;
  bool takes_noise = true;  ///< false: the map is right only for values that after_step() leaves; no weight noise

  bool keeps_norm() const { return constant_norm || manifold != Manifold::flat; }
};

/// Size of the map in real rows and columns; `complex` means that they are Re over Im pairs, 2n rows for n complex
/// entries.
struct Shape {
  Index rows = 0, cols = 0;
  bool complex = false;
  /// Returns this shape, or throws an Error saying that `plugin` needs a square map.
  STIEFEL_API Shape square(const char* plugin) const;
};

/// Singular values in descending order, eigenvalues by descending modulus. Complex maps give n of each, not 2n.
struct Spectrum {
  std::vector<double> singular_values;
  std::vector<std::complex<double>> eigenvalues;  ///< empty if the map is not square
};

/// What a map guarantees about W for every θ that an optimizer can reach.
struct Claim {
  enum Kind { none, orthogonal, unitary, bounded } kind = none;
  double low = 0, high = 0;  ///< bounded: every singular value lies in [low, high]
};

/// Real floating point operations of one call; apply, adjoint and accumulate for the given number of columns.
struct Cost {
  double refresh = 0, apply = 0, apply_adjoint = 0, accumulate = 0, finish = 0;
  double materialise = 0, pullback = 0;  ///< dense route only
  /// Rate of apply, apply_adjoint and accumulate relative to a dense product: they move more memory per operation.
  double efficiency = 0.75;
};

template <class S> class STIEFEL_API Parametrisation {
 public:
  explicit Parametrisation(Shape shape) : shape_(shape) {}
  virtual ~Parametrisation();
  Parametrisation(const Parametrisation&) = delete;
  Parametrisation& operator=(const Parametrisation&) = delete;

  Index rows() const { return shape_.rows; }
  Index cols() const { return shape_.cols; }
  bool complex_pairs() const { return shape_.complex; }

  /// The parameters, in the order in which every Blocks argument holds them. Called once.
  virtual std::vector<BlockSpec> blocks() const = 0;
  /// Writes θ of step 0. All blocks are zero on entry.
  virtual void initialise(Blocks<S> theta, Rng& rng) const = 0;

  /// Called whenever θ has changed, before products: at least once per step and per evaluation. May allocate.
  /// Idempotent. refresh(), finish() and penalty() of one map never run at the same time, but those of different maps
  /// may, on any thread.
  virtual void refresh(CBlocks<S> theta) = 0;

  /// Number of scalars that one concurrent apply, apply_adjoint or accumulate of that many columns takes from its
  /// Scratch.
  virtual Index scratch(Index columns) const;
  /// Y = W X, Y is rows × c, X is cols × c. Y never aliases X. May run concurrently on other columns. No allocation.
  virtual void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const = 0;
  /// dX = Wᵀ dY, with the same guarantees.
  virtual void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const = 0;
  /// Y += W X and dX += Wᵀ dY, with the same guarantees; they may take max(rows, cols)·c more scalars. Default: apply,
  /// then a sum.
  virtual void add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const;
  virtual void add_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const;

  /// Size of the running sum that accumulate() adds to: n² dense, m² + 2nm Householder, ΣP_f Q_f Kronecker.
  virtual Index accumulator() const = 0;
  /// sum += contribution of these columns (one chunk of one slice). May run concurrently on other sums; additive in the
  /// columns.
  virtual void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const = 0;
  /// dθ += the gradient that `sum` represents, with the sums added in slice order. Called once per pass, of which
  /// train.accumulate makes several per step, and once more for `composite` weight decay under train.weight_noise.
  virtual void finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) = 0;

  /// A soft constraint: returns its value and adds its gradient to dθ. Called after refresh(θ), once per pass, or once
  /// per step under train.weight_noise. Default: 0.
  virtual double penalty(CBlocks<S> theta, Blocks<S> dtheta);
  /// Called after every optimizer step that moves a block: a projection, or a change of base, which must not change W.
  /// A second call leaves W as it is, and so does the first for the θ of initialise(). With `train.average`, a map
  /// without state is also given averaged parameters. Default: nothing.
  virtual void after_step(Blocks<S> theta);

  /// The dense route of a structured map, if materialises() is true: materialise() writes W(θ) to `W` after refresh(θ),
  /// and pullback() does dθ += ∂⟨dW, W(θ)⟩ / ∂θ. Default: apply, or accumulate and finish, on the columns of I. The
  /// engine chooses the route (`route:` overrides it).
  virtual bool materialises() const;
  virtual void materialise(CBlocks<S> theta, Mat<S> W);
  virtual void pullback(CBlocks<S> theta, CMat<S> W, CMat<S> dW, Blocks<S> dtheta);
  /// W of the last refresh() if the map keeps it, else 0 × 0.
  virtual CMat<S> matrix() const;

  /// Spectrum of the W of the last refresh(), in double precision. Default: LAPACK on apply(I); override if cheaper or
  /// exact.
  virtual Spectrum spectrum() const;
  virtual Claim claim() const;
  /// The cost by which `route: auto` chooses between apply() and the dense route. Default: that of a dense product.
  virtual Cost cost(Index columns) const;
  /// Records named scalars, e.g. ‖A‖₂. Called at the steps of `record.scalars`.
  virtual void record(Recorder& recorder) const;
  /// State beyond θ (base points, counters). To load, it is called before the first refresh(), so arrays have their
  /// size after the constructor. Default: none.
  virtual void serialise(Archive& archive);

 private:
  Shape shape_;
};

/// A map that is formed explicitly once per step: the author writes blocks, initialise, materialise and pullback.
/// All products run inside libstiefel.
template <class S> class STIEFEL_API Dense : public Parametrisation<S> {
 public:
  explicit Dense(Shape shape);
  ~Dense() override;

  /// W = W(θ). `W` is rows × cols.
  void materialise(CBlocks<S> theta, Mat<S> W) override = 0;
  /// dθ += ∂⟨dW, W(θ)⟩ / ∂θ, for the θ and the W of the last materialise().
  void pullback(CBlocks<S> theta, CMat<S> W, CMat<S> dW, Blocks<S> dtheta) override = 0;

  bool materialises() const final { return true; }
  CMat<S> matrix() const final;
  void refresh(CBlocks<S> theta) final;
  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const final;
  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const final;
  Index accumulator() const final { return this->rows() * this->cols(); }
  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const final;
  void finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) final;

 private:
  Matrix<S> W_;
};

/// Skew-symmetric matrices by their strict lower triangle, column after column: θ has n(n−1)/2 numbers.
/// A(θ): A_ij = θ, A_ji = −θ for i > j.
template <class S> STIEFEL_API void skew(std::span<const S> theta, Given<Mat<S>> A);
/// dθ += ∂⟨dA, A(θ)⟩ / ∂θ, i.e. dA_ij − dA_ji for i > j.
template <class S> STIEFEL_API void add_skew(std::span<S> dtheta, Given<CMat<S>> dA);

extern template class Parametrisation<float>;
extern template class Parametrisation<double>;
extern template class Dense<float>;
extern template class Dense<double>;

}  // namespace stiefel
