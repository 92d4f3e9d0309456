// Pixel-by-pixel MNIST: one pixel a step, the digit asked for at the last (Le et al. 2015); permuted if wanted.
//
//   x'[t] = x[p[t]] / scale, p the identity or NumPy's RandomState(seed).permutation(T); T = 784, 10 classes.
//   Published orders: 92916 (Wisdom et al., scaled Cayley, expRNN), 1 (oRNN), 1234 (nnRNN).
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <stiefel/held_sequences.hpp>
#include <stiefel/item_batches.hpp>
#include <stiefel/numpy_random.hpp>
#include <stiefel/plugin.hpp>
#include "tasks/formats/data_path.hpp"
#include "tasks/formats/idx.hpp"

namespace {
using namespace stiefel;

struct PixelMnistOptions {
  std::string split = "first";
  Index validation_images = 5000, train_limit = 0, evaluation_limit = 0, permutation_seed = 92916;
  double scale = 255;
  bool permuted = false;

  void describe(Schema& s) {
    s.field("permuted", permuted, "pixels in a fixed random order");
    s.field("permutation_seed", permutation_seed,
            "the order is NumPy's RandomState(seed).permutation(784): 92916, 1 or 1234 in papers")
        .at_least(0)
        .at_most(std::numeric_limits<std::uint32_t>::max())
        .only_if(permuted, "`permuted: true`");
    s.field("scale", scale, "number by which pixels are divided; 256 in the code of the oRNN paper").more_than(0);
    s.field("split", split,
            "which of the 60,000 training images are used for validation; leaky: training and validation images are "
            "drawn independently, so "
            "that most validation images are also training images, as in the code of the oRNN paper")
        .one_of({"first", "last", "leaky"});
    s.field("validation_images", validation_images, "number of validation images; 0: train on all, without validation")
        .at_least(0);
    s.field("train_limit", train_limit, "number of training images to use; 0: all").at_least(0);
    s.field("evaluation_limit", evaluation_limit, "number of images to use for validation and for test; 0: all")
        .at_least(0);
  }
};

/// Labelled images of one size, a row of pixels each.
struct Digits {
  Idx images, labels;
  std::vector<DataFile> files;

  Index count() const { return images.sizes[0]; }
  Index pixels() const { return images.sizes[1] * images.sizes[2]; }
};

Idx load(const std::string& directory, const std::string& what, const std::string& stem, int dimensions,
         std::vector<DataFile>& files) {
  const std::string name = fmt::format("{}-idx{}-ubyte", stem, dimensions),
                    dotted = fmt::format("{}.idx{}-ubyte", stem, dimensions);
  const DataQuery query{"pixel_mnist",
                        what,
                        {"mnist", "", "MNIST/raw"},
                        {name + ".gz", name, dotted + ".gz", dotted},
                        "Fetch it with: stiefel data fetch mnist --data 'DIR'"};
  const std::string path = find_data_file(directory, query);
  files.push_back({"mnist/" + name, path});
  return read_idx(path, static_cast<std::size_t>(dimensions), mend_of(directory, query));
}

Digits load_digits(const std::string& directory, const std::string& what, const std::string& stem) {
  Digits d;
  d.images = load(directory, "the MNIST " + what + " images", stem + "-images", 3, d.files);
  d.labels = load(directory, "the MNIST " + what + " labels", stem + "-labels", 1, d.files);
  const std::string &images = d.files[0].path, &labels = d.files[1].path;
  if (d.count() != d.labels.sizes[0])
    throw Error(
        fmt::format("{} holds {} images but {} holds {} labels: they do not belong together. Replace the wrong one.",
                    images, d.count(), labels, d.labels.sizes[0]),
        Exit::data);
  const auto wrong =
      std::find_if(d.labels.values.begin(), d.labels.values.end(), [](std::uint8_t label) { return label > 9; });
  if (wrong != d.labels.values.end())
    throw Error(fmt::format("{}: label number {} is {}, expected a digit 0 to 9. Replace the file.", labels,
                            wrong - d.labels.values.begin(), *wrong),
                Exit::data);
  return d;
}

template <class S> class PixelMnist final : public Task<S> {
 public:
  using Options = PixelMnistOptions;
  PixelMnist(const Options& options, const TaskContext& context)
      : Task<S>(context),
        options_(options),
        training_(load_digits(context.data_directory, "training", "train")),
        test_(load_digits(context.data_directory, "test", "t10k")),
        order_(pixel_order(options, training_.pixels())) {
    if (test_.pixels() != training_.pixels())
      throw Error(fmt::format("{} holds images of {} pixels, {} of {}: they must agree. Replace the wrong one.",
                              training_.files[0].path, training_.pixels(), test_.files[0].path, test_.pixels()),
                  Exit::data);
    if (options_.validation_images >= training_.count())
      throw Error(
          fmt::format("pixel_mnist: validation_images is {}, but {} holds only {} images and some are needed for "
                      "training; lower it.",
                      options_.validation_images, training_.files[0].path, training_.count()));
    choose();
    batches_ = std::make_unique<ItemBatches>(context.batch, Index(train_.size()), context.seed);
  }

  TaskShape shape() const override {
    return {.input_size = 1,
            .output_size = 10,
            .readout = ReadoutKind::last,
            .labels = true,
            .steps = training_.pixels(),
            .training_set = Index(train_.size())};
  }

  Index batches(Split split) const override { return batches_->count(split, Index(items(split).size())); }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    const Digits& digits = split == Split::test ? test_ : training_;
    const auto steps = [&](std::int64_t) { return digits.pixels(); };
    const auto write = [&](std::int64_t image, Index b) {
      const std::uint8_t* pixels = digits.images.values.data() + image * digits.pixels();
      for (Index t = 0; t < digits.pixels(); ++t) batch.input(t, b)[0] = S(pixels[order_[t]] / options_.scale);
      batch.label(0, b) = digits.labels.values[image];
    };
    batches_->fill(batch, shape(), split, index, items(split), steps, write);
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return softmax_cross_entropy(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override { return {{"accuracy"}}; }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    metrics[0].sum += correct(output, targets);
    metrics[0].weight += total_weight(targets);
  }

  /// Ten equal logits, which is what trivial() writes.
  double baseline() const override { return std::log(10.0); }

  std::vector<DataFile> files() const override {
    std::vector<DataFile> all = training_.files;
    all.insert(all.end(), test_.files.begin(), test_.files.end());
    return all;
  }

  DataForm form() const override {
    DataForm form = Task<S>::form();
    form.input_mean = {0};
    form.input_scale = {options_.scale};
    return form;
  }
  /// IDX files of images, in the order of the pixels.
  static std::unique_ptr<SequenceReader<S>> open(const Options& options, const Trained& trained,
                                                 const std::string& file) {
    const Idx images = read_idx(file, 3, "");
    const Index pixels = images.sizes[1] * images.sizes[2];
    if (pixels != trained.shape.steps)
      throw Error(fmt::format("{} holds images of {} pixels, but the network was trained with {}", file, pixels,
                              trained.shape.steps),
                  Exit::data);
    const std::vector<std::int64_t> order = pixel_order(options, pixels);
    std::vector<typename HeldSequences<S>::Sequence> sequences(static_cast<std::size_t>(images.sizes[0]));
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      sequences[i].name = std::to_string(i);
      for (Index t = 0; t < pixels; ++t)
        sequences[i].inputs.push_back(
            S(images.values[i * std::size_t(pixels) + std::size_t(order[t])] / options.scale));
    }
    return std::make_unique<HeldSequences<S>>(trained.shape, std::move(sequences));
  }

 private:
  const std::vector<std::int64_t>& items(Split split) const {
    return split == Split::train ? train_ : split == Split::validation ? validation_ : chosen_test_;
  }

  static std::vector<std::int64_t> pixel_order(const Options& options, Index pixels) {
    if (options.permuted)
      return NumpyRandomState(static_cast<std::uint32_t>(options.permutation_seed)).permutation(pixels);
    std::vector<std::int64_t> order(static_cast<std::size_t>(pixels));
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  void choose() {
    const Index n = training_.count(), v = options_.validation_images;
    std::vector<std::int64_t> all(static_cast<std::size_t>(n)), other;
    std::iota(all.begin(), all.end(), 0);
    if (options_.split == "first") std::rotate(all.begin(), all.begin() + v, all.end());
    if (options_.split == "leaky") {
      all = Rng(this->context().seed, "leaky split", 0).permutation(n);
      other = Rng(this->context().seed, "leaky split", 1).permutation(n);
    }
    const std::vector<std::int64_t>& held_out = options_.split == "leaky" ? other : all;
    train_.assign(all.begin(), all.end() - v);
    validation_.assign(held_out.end() - v, held_out.end());
    chosen_test_.resize(static_cast<std::size_t>(test_.count()));
    std::iota(chosen_test_.begin(), chosen_test_.end(), 0);
    const auto limit = [](std::vector<std::int64_t>& items, Index most) {
      if (most > 0 && most < Index(items.size())) items.resize(static_cast<std::size_t>(most));
    };
    limit(train_, options_.train_limit);
    limit(validation_, options_.evaluation_limit);
    limit(chosen_test_, options_.evaluation_limit);
  }

  Options options_;
  Digits training_, test_;
  std::vector<std::int64_t> order_, train_, validation_, chosen_test_;
  std::unique_ptr<ItemBatches> batches_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::task<PixelMnist>("pixel_mnist", "MNIST digits read one pixel per step, in order or permuted"))
