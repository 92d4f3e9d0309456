// Input and readout take one product per chunk each; symbols are looked up in a table.
#include "engine/input_and_readout.hpp"

#include <stiefel/linear_algebra.hpp>

namespace stiefel {

template <class S> InputLayer<S>::InputLayer(const InputOptions& options, InputKind kind, Index size, Index rows)
    : options_(options), kind_(kind), size_(size), rows_(rows) {
  if (options.embedding_size > 0 && kind_ != InputKind::symbols)
    throw Error("an embedding needs an input of symbols, in the first layer; remove it or choose another task");
  if (kind_ == InputKind::none && !options.bias)
    throw Error("the task has no input, so the cell would read nothing with `bias: false`; set it to true");
}

template <class S> std::vector<BlockSpec> InputLayer<S>::blocks() const {
  std::vector<BlockSpec> blocks;
  if (kind_ != InputKind::none) blocks.push_back({"weight", rows_ * depth(), rows_, depth()});
  if (options_.bias) blocks.push_back({"bias", rows_, rows_, 1});
  if (options_.embedding_size > 0) blocks.push_back({"embedding", depth() * size_, depth(), size_});
  return blocks;
}

template <class S> std::span<S> InputLayer<S>::bias(Blocks<S> theta) const {
  return options_.bias ? theta[kind_ != InputKind::none] : std::span<S>{};
}

template <class S> void InputLayer<S>::initialise(Blocks<S> theta, Rng& rng) const {
  if (kind_ != InputKind::none) options_.init.fill(as_matrix(theta[0], rows_, depth()), rng);
  if (options_.bias) options_.bias_init.fill(as_matrix(bias(theta), rows_, 1), rng);
  if (options_.embedding_size > 0)
    options_.embedding_init.fill(as_matrix(theta[theta.count() - 1], depth(), size_), rng);
}

template <class S> void InputLayer<S>::refresh(CBlocks<S> theta) {
  table_.setZero(rows_, width() + 1);
  if (kind_ == InputKind::dense) {
    table_.leftCols(size_) = as_matrix(theta[0], rows_, size_);
    if (options_.bias) table_.col(size_) = as_vector(theta[1]);
    return packed_.pack(table_);
  }
  if (kind_ == InputKind::symbols) {
    const CMat<S> V = as_matrix(theta[0], rows_, depth());
    if (options_.embedding_size > 0)
      multiply<S>(V, as_matrix(theta[theta.count() - 1], depth(), size_), table_.leftCols(size_));
    else
      table_.leftCols(size_) = V;
  }
  if (options_.bias) table_.colwise() += as_vector(theta[kind_ != InputKind::none]);
}

/// Copies the inputs of the window with a row of ones below them; they are zero where a sequence has ended.
template <class S> CMat<S> InputLayer<S>::gather(const Window<S>& w, std::span<S> panel) const {
  const CMat<S> inputs = w.batch.inputs();
  S* x = panel.data();
  for (Index t = 0; t < w.steps; ++t) {
    for (Index c = 0; c < w.columns(); ++c) {
      const Index column = w.step(t, c) * w.batch.sequences() + w.slice.sequences[c];
      x = w.alive(t, c) ? std::copy_n(inputs.data() + column * inputs.outerStride(), size_, x)
                        : std::fill_n(x, size_, S(0));
      *x++ = S(1);
    }
  }
  return cmat<S>(panel.data(), size_ + 1, w.steps * w.columns(), size_ + 1);
}

/// The table's column for a step of a sequence; the last column if there is no symbol.
template <class S> Index InputLayer<S>::symbol(const Window<S>& w, Index t, Index c) const {
  if (kind_ != InputKind::symbols || !w.alive(t, c)) return width();
  const std::int32_t s = w.batch.symbols()[w.step(t, c) * w.batch.sequences() + w.slice.sequences[c]];
  return s >= 0 ? s : width();
}

template <class S> void InputLayer<S>::forward(const Window<S>& w, Mat<S> target, std::span<S> panel) const {
  if (kind_ == InputKind::dense) return packed_.multiply(gather(w, panel), target);
  for (Index t = 0; t < w.steps; ++t)
    for (Index c = 0; c < w.columns(); ++c)
      std::copy_n(table_.col(symbol(w, t, c)).data(), rows_, target.col(t * w.columns() + c).data());
}

template <class S>
void InputLayer<S>::accumulate(const Window<S>& w, CMat<S> delta, std::span<S> sum, std::span<S> panel) const {
  if (kind_ == InputKind::dense) {
    add_outer(delta, gather(w, panel), mat(sum.data(), rows_, size_ + 1, rows_));
    return;
  }
  Mat<S> dtable = mat(sum.data(), rows_, width() + 1, rows_);
  for (Index t = 0; t < w.steps; ++t)
    for (Index c = 0; c < w.slice.active[w.first + t]; ++c)
      dtable.col(symbol(w, t, c)) += delta.col(t * w.columns() + c);
}

template <class S> void InputLayer<S>::finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) const {
  const CMat<S> dtable = cmat(sum.data(), rows_, width(), rows_);
  if (options_.embedding_size > 0) {
    const Index embedding = theta.count() - 1;
    add_product<S>(dtable, transposed(as_matrix(theta[embedding], depth(), size_)),
                   as_matrix(dtheta[0], rows_, depth()));
    add_product<S>(transposed(as_matrix(theta[0], rows_, depth())), dtable,
                   as_matrix(dtheta[embedding], depth(), size_));
  } else if (kind_ != InputKind::none) {
    as_matrix(dtheta[0], rows_, size_) += dtable;
  }
  if (!options_.bias) return;
  if (kind_ == InputKind::symbols) as_vector(bias(dtheta)) += dtable.rowwise().sum();
  as_vector(bias(dtheta)) += as_vector(sum.subspan(rows_ * width()));
}

template <class S>
Readout<S>::Readout(const ReadoutOptions& options, Index output_size, Index output_rows, bool complex)
    : options_(options), size_(output_size), rows_(options.rows == "real" && complex ? output_rows / 2 : output_rows) {
  if (options.rows == "real" && !complex)
    throw Error("model.readout.rows: real needs a complex map; the last layer is real, use all");
}

template <class S> std::vector<BlockSpec> Readout<S>::blocks() const {
  std::vector<BlockSpec> blocks{{"weight", size_ * rows_, size_, rows_}};
  if (options_.bias) blocks.push_back({"bias", size_, size_, 1});
  return blocks;
}

template <class S> void Readout<S>::initialise(Blocks<S> theta, Rng& rng) const {
  options_.init.fill(as_matrix(theta[0], size_, rows_), rng);
  if (options_.bias) options_.bias_init.fill(as_matrix(theta[1], size_, 1), rng);
}

template <class S> void Readout<S>::refresh(CBlocks<S> theta) {
  const CMat<S> Y = as_matrix(theta[0], size_, rows_);
  Y_.pack(Y);
  Y_adjoint_.pack_transposed(Y);
}

template <class S> void Readout<S>::forward(CBlocks<S> theta, CMat<S> h, Mat<S> o) const {
  Y_.multiply(rows_of(h, 0, rows_), o);
  if (options_.bias) o.colwise() += as_vector(theta[1]);
}

template <class S> void Readout<S>::accumulate(CMat<S> h, CMat<S> d_o, std::span<S> sum) const {
  add_outer(d_o, rows_of(h, 0, rows_), as_matrix(sum.first(size_ * rows_), size_, rows_));
  if (options_.bias) as_vector(sum.subspan(size_ * rows_)) += d_o.rowwise().sum();
}

template <class S> void Readout<S>::backward(CMat<S> d_o, Mat<S> dh) const {
  Y_adjoint_.multiply(d_o, rows_of(dh, 0, rows_));
  dh.bottomRows(dh.rows() - rows_).setZero();
}

template class InputLayer<float>;
template class InputLayer<double>;
template class Readout<float>;
template class Readout<double>;

}  // namespace stiefel
