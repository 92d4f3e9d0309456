/// Tasks on the utterances of TIMIT: one utterance is one sequence.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <stiefel/held_sequences.hpp>
#include <stiefel/item_batches.hpp>
#include <stiefel/plugin.hpp>
#include "tasks/formats/audio.hpp"
#include "tasks/formats/named_file.hpp"
#include "tasks/formats/timit_splits.hpp"

namespace stiefel {

template <class S> class TimitTask : public Task<S> {
 public:
  TimitTask(const TimitOptions& options, const TaskContext& context, const std::string& name)
      : Task<S>(context), corpus_(find_timit(context.data_directory, options.folder, name)) {
    splits_ = split_timit(corpus_, options, context.data_directory);
    batches_ = std::make_unique<ItemBatches>(context.batch, Index(splits_.train.size()), context.seed);
  }

  Index batches(Split split) const override { return batches_->count(split, Index(places(split).size())); }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    batches_->fill(
        batch, this->shape(), split, index, places(split),
        [&](std::size_t utterance) { return batch_steps(split, steps_of(utterance)); },
        [&](std::size_t utterance, Index b) { write(utterance, batch, b); });
  }

  /// The sound and, where they are used, the transcriptions of all utterances that are used.
  std::vector<DataFile> files() const override {
    std::vector<DataFile> all;
    for (const std::size_t i : used()) {
      const Utterance& u = corpus_.utterances[i];
      const std::string name =
          fmt::format("timit/{}dr{}/{}/{}", u.part.empty() ? "" : u.part + "/", u.dialect, u.speaker, u.sentence);
      all.push_back({name + ".wav", u.audio});
      if (reads_phones()) all.push_back({name + ".phn", u.phones});
    }
    return all;
  }

 protected:
  const TimitCorpus& corpus() const { return corpus_; }
  const std::vector<std::size_t>& places(Split split) const {
    return split == Split::train ? splits_.train : split == Split::validation ? splits_.validation : splits_.test;
  }
  /// Places of the utterances of all splits.
  std::vector<std::size_t> used() const {
    std::vector<std::size_t> all = splits_.train;
    all.insert(all.end(), splits_.validation.begin(), splits_.validation.end());
    all.insert(all.end(), splits_.test.begin(), splits_.test.end());
    return all;
  }
  Index longest(const std::vector<std::size_t>& utterances) const {
    Index steps = 0;
    for (const std::size_t i : utterances) steps = std::max(steps, steps_of(i));
    return steps;
  }
  std::string mend() const { return timit_mend(this->context().data_directory); }

  /// Sound of an utterance at TIMIT's 16 kHz.
  std::vector<double> sound(std::size_t utterance) const {
    return sound_of(corpus_.utterances[utterance].audio, mend());
  }
  static std::vector<double> sound_of(const std::string& path, const std::string& mend) {
    Audio audio = read_audio(path, mend);
    if (audio.rate != 16000)
      NamedFile{path, mend}.refuse(fmt::format("{} samples per second, but TIMIT has 16000", audio.rate));
    return std::move(audio.samples);
  }
  /// A reader of one utterance, the columns of `inputs`.
  static std::unique_ptr<SequenceReader<S>> reader_of(const Matrix<S>& inputs, const TaskShape& shape) {
    using Held = HeldSequences<S>;
    return std::make_unique<Held>(
        shape, std::vector<typename Held::Sequence>{{"", {inputs.data(), inputs.data() + inputs.size()}, {}}});
  }

  virtual bool reads_phones() const = 0;
  virtual Index steps_of(std::size_t utterance) const = 0;
  /// Steps of a batch whose longest utterance has `longest`.
  virtual Index batch_steps([[maybe_unused]] Split split, Index longest) const { return longest; }
  /// Writes sequence b of the batch, and its length.
  virtual void write(std::size_t utterance, Batch<S>& batch, Index b) const = 0;

 private:
  TimitCorpus corpus_;
  TimitSplits splits_;
  std::unique_ptr<ItemBatches> batches_;
};

}  // namespace stiefel
