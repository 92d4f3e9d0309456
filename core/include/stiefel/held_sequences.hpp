/// A reader of sequences that are in memory, for tasks whose files are read as a whole.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/task.hpp>

namespace stiefel {

template <class S> class HeldSequences final : public SequenceReader<S> {
 public:
  struct Sequence {
    std::string name;
    std::vector<S> inputs;              ///< d numbers per step, for a task with dense inputs
    std::vector<std::int32_t> symbols;  ///< one per step, for a task with symbols
  };

  HeldSequences(const TaskShape& shape, std::vector<Sequence> sequences)
      : shape_(shape), sequences_(std::move(sequences)) {}

  bool next() override {
    first_ = 0;
    return ++place_ < Index(sequences_.size());
  }
  std::string name() const override { return sequences_[place_].name; }

  bool read(Index steps, Batch<S>& batch) override {
    const Sequence& s = sequences_[place_];
    const bool symbols = shape_.input == InputKind::symbols;
    const Index length = symbols ? Index(s.symbols.size()) : Index(s.inputs.size()) / shape_.input_size,
                count = std::min(steps, length - first_);
    if (count <= 0) return false;
    batch.resize(shape_, 1, count);
    for (Index t = 0; t < count; ++t)
      if (symbols)
        batch.symbol(t, 0) = s.symbols[first_ + t];
      else
        std::copy_n(s.inputs.data() + (first_ + t) * shape_.input_size, shape_.input_size, batch.input(t, 0).data());
    first_ += count;
    return true;
  }

 private:
  TaskShape shape_;
  std::vector<Sequence> sequences_;
  Index place_ = -1, first_ = 0;
};

}  // namespace stiefel
