// Memory with guards: numbers before, after and between those that a plugin may use. A write beyond them is seen in the
// guards, a read in results that change with the numbers that the guards hold.
#pragma once

#include <malloc.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <stiefel/matrix.hpp>
#include <stiefel/random.hpp>
#include "engine/parameters.hpp"

namespace stiefel::conformance {

/// What guards hold. Finite, so that a product with zero stays zero; exact in both scalars.
inline thread_local double guard_value = -1234567;

/// Other guards while it lives.
class OtherGuards {
 public:
  OtherGuards() { guard_value = 7654321; }
  ~OtherGuards() { guard_value = before_; }
  OtherGuards(const OtherGuards&) = delete;
  OtherGuards& operator=(const OtherGuards&) = delete;

 private:
  double before_ = guard_value;
};

/// While it lives, memory that is allocated holds other bytes than usual (with glibc).
class FilledMemory {
 public:
  explicit FilledMemory(int byte) {
    mallopt(M_PERTURB, byte);
    std::vector<void*> held;  // small pieces that were freed before are handed out as they are: fill these, too
    for (std::size_t size = 8; size < 2048; size += 16)
      for (int i = 0; i < 16; ++i) held.push_back(std::malloc(size));
    for (void* piece : held) std::free(piece);
  }
  ~FilledMemory() { mallopt(M_PERTURB, 0); }
  FilledMemory(const FilledMemory&) = delete;
  FilledMemory& operator=(const FilledMemory&) = delete;
};

/// Whether results() of an object that it creates are the same, same(a, b), whatever the memory held before.
template <class F, class Same> bool ignores_old_memory(F&& results, Same&& same) {
  const auto in_memory_of = [&](int byte) {
    const FilledMemory filled(byte);
    return results();
  };
  return same(in_memory_of(0x3e), in_memory_of(0xc0));  // as are ~0x3e and ~0xc0, all four differ
}
inline constexpr const char* reads_old_memory =
    "an object made in other memory gives other numbers: it reads numbers, most likely members, that were never "
    "written";

/// Numbers around a block of that size: a wrong split of it most often ends within another such size.
inline Index margin_of(Index size) { return (std::clamp<Index>(size, 1, 1024) + 63) / 64 * 64; }

/// Whether all bits are those of `number`.
template <class S> bool all_equal(const S* numbers, Index count, S number) {
  return count == 0 || (std::memcmp(numbers, &number, sizeof number) == 0 &&
                        std::memcmp(numbers, numbers + 1, std::size_t(count - 1) * sizeof number) == 0);
}

/// Aligned alike, so that products of the same numbers have the same bits.
template <class S> class Guarded {
 public:
  explicit Guarded(Index size, S fill = 0)
      : guard_(S(guard_value)),
        margin_(margin_of(size)),
        memory_(std::size_t(size + 2 * margin_) / Line::size + 1, Line(guard_)),
        size_(size) {
    std::fill_n(data(), size, fill);
  }
  S* data() { return reinterpret_cast<S*>(memory_.data()) + margin_; }
  const S* data() const { return reinterpret_cast<const S*>(memory_.data()) + margin_; }
  Index size() const { return size_; }
  std::span<S> span() { return {data(), std::size_t(size_)}; }
  std::span<const S> span() const { return {data(), std::size_t(size_)}; }
  S guard() const { return guard_; }
  bool same_bits(const Guarded& other) const { return std::memcmp(data(), other.data(), sizeof(S) * size_) == 0; }
  bool intact() const {
    return all_equal(data() - margin_, margin_, guard_) && all_equal(data() + size_, margin_, guard_);
  }

 private:
  struct alignas(64) Line {
    static constexpr std::size_t size = 64 / sizeof(S);
    explicit Line(S number) { std::ranges::fill(numbers, number); }
    S numbers[size];
  };
  S guard_;
  Index margin_;
  std::vector<Line> memory_;
  Index size_;
};

/// A matrix whose columns do not touch each other.
template <class S> class Panel {
 public:
  Panel(Index rows, Index cols, S fill = 0) : memory_((rows + gap) * cols, S(guard_value)), rows_(rows), cols_(cols) {
    whole().setConstant(fill);
  }
  template <class D> explicit Panel(const Eigen::MatrixBase<D>& values) : Panel(values.rows(), values.cols()) {
    whole() = values.template cast<S>();
  }

  Mat<S> whole() { return mat(memory_.data(), rows_, cols_, rows_ + gap); }
  CMat<S> read() const { return cmat(memory_.data(), rows_, cols_, rows_ + gap); }
  Mat<S> columns(Index first, Index count) {
    return mat(memory_.data() + first * (rows_ + gap), rows_, count, rows_ + gap);
  }
  CMat<S> read(Index first, Index count) const {
    return cmat(memory_.data() + first * (rows_ + gap), rows_, count, rows_ + gap);
  }
  S guard() const { return memory_.guard(); }
  bool same_bits(const Panel& other) const { return memory_.same_bits(other.memory_); }
  bool intact() const {
    bool kept = memory_.intact();
    for (Index j = 0; kept && j < cols_; ++j)
      kept = all_equal(memory_.data() + j * (rows_ + gap) + rows_, gap, memory_.guard());
    return kept;
  }

 private:
  static constexpr Index gap = 3;
  Guarded<S> memory_;
  Index rows_, cols_;
};

/// The numbers of a layout, which outlives them, with guards around every block. Numbers go in and out in double.
template <class S> class GuardedBlocks {
 public:
  explicit GuardedBlocks(const Layout& layout)
      : layout_(&layout), gap_(gap_of(layout)), memory_(layout.size() + gap_ * layout.count(), S(guard_value)) {
    fill(0);
  }
  GuardedBlocks(const Layout& layout, const std::vector<double>& numbers) : GuardedBlocks(layout) { set(numbers); }

  Blocks<S> all() { return layout_->all(memory_.data(), gap_); }
  CBlocks<S> all() const { return layout_->all(memory_.data(), gap_); }
  Blocks<S> part(Index first, Index count) { return layout_->part(memory_.data(), first, count, gap_); }
  CBlocks<S> part(Index first, Index count) const { return layout_->part(memory_.data(), first, count, gap_); }

  void fill(S number) {
    for (Index b = 0; b < layout_->count(); ++b) std::ranges::fill(all()[b], number);
  }
  void set(const std::vector<double>& numbers) {
    for (Index b = 0; b < layout_->count(); ++b)
      std::ranges::transform(layout_->all(numbers.data())[b], all()[b].begin(), [](double x) { return S(x); });
  }
  std::vector<double> numbers() const {
    std::vector<double> values;
    for (Index b = 0; b < layout_->count(); ++b) values.insert(values.end(), all()[b].begin(), all()[b].end());
    return values;
  }
  bool intact() const {
    bool kept = memory_.intact();
    for (Index b = 0; kept && b < layout_->count(); ++b)
      kept = all_equal(all()[b].data() + all()[b].size(), gap_, memory_.guard());
    return kept;
  }

 private:
  static Index gap_of(const Layout& layout) {
    Index largest = 0;
    for (const BlockSpec& block : layout.blocks()) largest = std::max(largest, block.size);
    return margin_of(largest);
  }

  const Layout* layout_;
  Index gap_;
  Guarded<S> memory_;
};

/// Independent normal entries, rounded to 1/4096: exact in both scalars, and so are their simple combinations.
inline Matrix<double> random_matrix(Rng& rng, Index rows, Index cols, double scale = 1) {
  Matrix<double> m(rows, cols);
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) m(i, j) = std::round(4096 * scale * rng.normal()) / 4096;
  return m;
}

}  // namespace stiefel::conformance
