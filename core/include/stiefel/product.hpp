/// Y = W·X, Y += W·X, Y −= W·X with a matrix W that is packed once and multiplied many times by few columns.
///
/// This is the product of the time loop: W changes once per optimizer step, X holds one time step of a slice (1 … 64
/// columns). The code is compiled for several SIMD instruction sets and the best one that this CPU supports is chosen
/// at run time.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

template <class S> struct ProductKernel;

/// For every element of Y, s = Σ_k W(i,k)·X(k,j) is summed from zero in the order k = 0, 1, …; then Y = s, Y + s or Y −
/// s, rounded once. The bits of an element therefore depend on row i of W and column j of X alone: not on the number of
/// columns in the call, on strides, on alignment or on the thread. A different SIMD target may give different bits
/// (with and without fused multiply-add).
template <class S> class STIEFEL_API PackedProduct {
 public:
  PackedProduct();
  ~PackedProduct();
  PackedProduct(PackedProduct&&) noexcept;
  PackedProduct& operator=(PackedProduct&&) noexcept;

  /// Copies W (rows × cols). May be called again with any size; allocates only when the copy grows. Must not run
  /// concurrently with products.
  void pack(CMat<S> W);
  /// Copies Wᵀ: afterwards rows() == W.cols().
  void pack_transposed(CMat<S> W);

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }

  /// X: cols() × any, Y: rows() × the same, both with any outer stride; nothing outside the rows of Y is written, Y
  /// must not overlap X. These are thread-safe and do not allocate. `multiply` does not read Y.
  void multiply(CMat<S> X, Mat<S> Y) const;  ///< Y = W·X
  void add(CMat<S> X, Mat<S> Y) const;       ///< Y += W·X
  void subtract(CMat<S> X, Mat<S> Y) const;  ///< Y −= W·X

 private:
  struct Release {
    void operator()(S* numbers) const;
  };
  void reserve(Index rows, Index cols);
  void run(CMat<S> X, Mat<S> Y, bool accumulate, S sign) const;

  const ProductKernel<S>* kernel_ = nullptr;  // of the SIMD target that the copy was laid out for
  Index rows_ = 0, cols_ = 0, capacity_ = 0;
  std::unique_ptr<S[], Release> packed_;
};

/// C += A·Bᵀ, the gradient of a matrix from many columns: by BLAS, or, if A or B has few rows, by a kernel that packs
/// nothing. A: rows × n, B: cols × n, C: rows × cols, any outer strides; C overlaps neither. Thread-safe; no
/// allocation. The bits depend only on the numbers and the shapes.
template <class S> STIEFEL_API void add_outer(Given<CMat<S>> A, Given<CMat<S>> B, Mat<S> C);

/// The SIMD target that packs, products and vector_* functions use from now on, e.g. "AVX2": part of a run's
/// provenance.
STIEFEL_API const char* product_target();
/// All targets that were compiled and that this CPU supports, best first.
STIEFEL_API std::vector<const char*> product_targets();
/// Restricts the program to one of product_targets(); "" restores the automatic choice. Returns false if there is no
/// such target. Matrices that are already packed keep their target. Do not call this while other threads use this
/// library.
STIEFEL_API bool select_product_target(std::string_view name);

extern template class PackedProduct<float>;
extern template class PackedProduct<double>;

}  // namespace stiefel
