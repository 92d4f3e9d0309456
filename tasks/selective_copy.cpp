// Selective copy: repeat the symbols that stand at random steps among blanks (Gu & Dao 2023; a variant of the copy task
// with a random distance between the symbols).
//
//   Symbols: 0 blank, 1 … K data, K + 1 marker. T + 2M steps; T = 4096, M = 16, K = 14 in the literature.
//   input  M data at random steps of the first T + M, 0 elsewhere, marker × M      target  the data, at the last M steps
//
// Only the last M steps are scored. A predictor without memory costs ln K.
#include "recall.hpp"

namespace {
using namespace stiefel;

struct SelectiveCopyOptions {
  Index length = 64, symbols = 8, alphabet = 8;
  GeneratedOptions data;

  void describe(Schema& s) {
    s.field("length", length, "number of blanks T").at_least(1).at_most(1e9);
    s.field("symbols", symbols, "number of symbols M to remember").at_least(1).at_most(1e9);
    s.field("alphabet", alphabet, "number of different symbols K").at_least(2).at_most(1e9);
    data.describe(s);
  }
};

template <class S> class SelectiveCopy final : public Recall<S> {
 public:
  using Options = SelectiveCopyOptions;
  SelectiveCopy(const Options& options, const TaskContext& context)
      : Recall<S>(options.data, context, 1, options.alphabet + 1), options_(options) {}

  TaskShape shape() const override {
    return {.input = InputKind::symbols,
            .input_size = options_.alphabet + 2,
            .output_size = options_.alphabet + 1,
            .readout = ReadoutKind::every,
            .labels = true,
            .steps = options_.length + 2 * options_.symbols,
            .training_set = this->training_set()};
  }

 protected:
  void make(Rng& rng, Batch<S>& batch, Index b) const override {
    this->mask(batch, b);
    const Index before = options_.length + options_.symbols;
    Index shown = 0;
    for (Index t = 0; t < before; ++t) {
      if (rng.integer(0, before - t) >= options_.symbols - shown) continue;  // each choice of M steps is equally likely
      const auto symbol = std::int32_t(rng.integer(1, options_.alphabet + 1));
      batch.symbol(t, b) = symbol;
      batch.symbol(before + shown, b) = std::int32_t(options_.alphabet + 1);
      this->ask(batch, before + shown++, b, symbol);
    }
  }

 private:
  Options options_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<SelectiveCopy>("selective_copy", "repeat symbols that stand among blanks"))
