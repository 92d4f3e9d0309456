/// Which utterances of TIMIT are for training, validation and test.
///
///   published   train: the training speakers without the SA sentences (462 × 8 = 3,696); test: the core test set (24
///               speakers × 8 = 192) or the complete one (168 × 8 = 1,344); validation: the development set (50 of the
///               test speakers, none of the core: 400), or this many utterances held out from the training set. Needs
///               the whole corpus.
///   speakers    the speakers that are there are divided, as many women as men each for test and validation, the others
///               for training: NumPy's RandomState(seed) permutes the women, then the men, both in alphabetical order;
///               the first are for test, the next for validation. For a part of the corpus.
#pragma once

#include <string>
#include <vector>

#include <stiefel/schema.hpp>
#include "tasks/formats/timit.hpp"

namespace stiefel {

struct TimitOptions {
  std::string folder, split = "auto", test = "core", validation = "development";
  Index held_out = 184, test_speakers = 4, validation_speakers = 2, split_seed = 1;
  bool sa = false;

  void describe(Schema& s);
};

/// Places in the corpus's utterances.
struct TimitSplits {
  std::vector<std::size_t> train, validation, test;
};

/// Error(Exit::data) when the corpus does not hold what the options ask for.
TimitSplits split_timit(const TimitCorpus& corpus, const TimitOptions& options, const std::string& data_directory);

}  // namespace stiefel
