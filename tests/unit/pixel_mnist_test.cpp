// The pixel-by-pixel MNIST task on small files made here and, where STIEFEL_DATA names a folder with them, on the real
// ones.
#include "idx_files.hpp"
#include "task_plugins.hpp"

#include <doctest/doctest.h>
#include <array>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <stiefel/numpy_random.hpp>

#include <stiefel/numpy_random.hpp>

using namespace stiefel;
using namespace task_plugins;
using idx_files::Folder;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t training_images = 40, test_images = 15, side = 3;
constexpr Index steps = side * side;

/// Pixel t of image i is 20·t + i, so that every pixel names its place and its image; labels are i mod 10.
struct SmallSet {
  std::string images, labels;
  SmallSet(std::uint32_t count, std::uint32_t rows = side)
      : images(idx_files::header({count, rows, side})), labels(idx_files::header({count})) {
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::uint32_t t = 0; t < rows * side; ++t) images += char(20 * t + i);
      labels += char(i % 10);
    }
  }
};

void write_small(const fs::path& folder) {
  const SmallSet training(training_images), test(test_images);
  idx_files::write(folder / "train-images-idx3-ubyte", training.images);
  idx_files::write(folder / "train-labels-idx1-ubyte", training.labels);
  idx_files::write(folder / "t10k-images-idx3-ubyte", test.images);
  idx_files::write(folder / "t10k-labels-idx1-ubyte", test.labels);
}

template <class S = float>
auto small(const Folder& folder, const std::string& options, Index batch = 10, std::uint64_t seed = 1) {
  return make<S>("pixel_mnist", options, {seed, batch, folder.path.string()});
}

/// Numbers of the images in a batch, by their first pixel in reading order; checks the label.
std::vector<int> images_in(Batch<float>& batch, double scale = 255) {
  std::vector<int> numbers;
  for (Index b = 0; b < batch.sequences(); ++b) {
    numbers.push_back(int(std::lround(batch.input(0, b)[0] * scale)));
    CHECK(batch.label(0, b) == numbers.back() % 10);
  }
  return numbers;
}

std::set<int> images_of(const Task<float>& task, Split split) {
  std::set<int> all;
  for (Index i = 0; i < task.batches(split); ++i) {
    Batch<float> batch = batch_of(task, split, i);
    for (const int image : images_in(batch)) all.insert(image);
  }
  return all;
}

std::set<int> range(int first, int last) {
  std::set<int> all;
  for (int i = first; i < last; ++i) all.insert(i);
  return all;
}

std::string refusal(const Folder& folder, const std::string& options = "validation_images: 5", Exit code = Exit::data) {
  return refusal_of([&] { return small(folder, options); }, code);
}

}  // namespace

TEST_CASE("images are read pixel by pixel, divided by the scale, with their labels") {
  const Folder folder;
  write_small(folder.path / "mnist");
  const auto task = small(folder, "{validation_images: 10, scale: 256}");
  const TaskShape shape = task->shape();
  CHECK(shape.steps == steps);
  CHECK((shape.input == InputKind::dense && shape.input_size == 1 && shape.output_size == 10 && shape.labels));
  CHECK(shape.readout == ReadoutKind::last);
  Batch<float> batch = batch_of(*task, Split::test, 1);
  REQUIRE(batch.sequences() == 5);
  for (Index b = 0; b < 5; ++b) {
    CHECK(batch.label(0, b) == b);
    for (Index t = 0; t < steps; ++t) CHECK(batch.input(t, b)[0] == float(20 * t + 10 + b) / 256);
  }
  CHECK(task->files().size() == 4);
  CHECK(task->files()[0].path == (folder.path / "mnist/train-images-idx3-ubyte").string());
  CHECK(task->metrics().at(0).name == "accuracy");
  CHECK((task->form().input_mean == std::vector{0.0} && task->form().input_scale == std::vector{256.0}));
  CHECK(task->form().output == DataForm::Output::softmax);
}

TEST_CASE("splits") {
  const Folder folder;
  write_small(folder.path / "mnist");
  const auto first = small(folder, "{validation_images: 10}");
  CHECK((first->batches(Split::train) == 3 && first->batches(Split::validation) == 1 &&
         first->batches(Split::test) == 2));
  CHECK(images_of(*first, Split::validation) == range(0, 10));
  CHECK(images_of(*first, Split::train) == range(10, 40));
  CHECK(images_of(*first, Split::test) == range(0, 15));
  const auto last = small(folder, "{validation_images: 10, split: last}");
  CHECK(images_of(*last, Split::validation) == range(30, 40));
  CHECK(images_of(*last, Split::train) == range(0, 30));
  const auto all = small(folder, "{validation_images: 0}");
  CHECK(all->batches(Split::validation) == 0);
  CHECK(images_of(*all, Split::train) == range(0, 40));
  const auto limited = small(folder, "{validation_images: 10, train_limit: 20, evaluation_limit: 7}");
  CHECK(images_of(*limited, Split::train) == range(10, 30));
  CHECK(images_of(*limited, Split::validation) == range(0, 7));
  CHECK(images_of(*limited, Split::test) == range(0, 7));
}

TEST_CASE("the leaky split trains on most of its validation images") {
  const Folder folder;
  write_small(folder.path / "mnist");
  const auto leaky = small(folder, "{validation_images: 10, split: leaky}");
  const std::set<int> training = images_of(*leaky, Split::train), validation = images_of(*leaky, Split::validation);
  CHECK((training.size() == 30 && validation.size() == 10));
  int both = 0;
  for (const int image : validation) both += int(training.count(image));
  CHECK(both >= 4);
  CHECK(validation != range(30, 40));
}

TEST_CASE("every epoch shows every training image once, in another order; fill is pure") {
  const Folder folder;
  write_small(folder.path / "mnist");
  const auto task = small(folder, "{validation_images: 10}"), other = small(folder, "{validation_images: 10}", 10, 2);
  std::vector<std::vector<int>> epochs;
  for (Index epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> order;
    for (Index i = 0; i < 3; ++i) {
      Batch<float> batch = batch_of(*task, Split::train, epoch * 3 + i);
      for (const int image : images_in(batch)) order.push_back(image);
    }
    epochs.push_back(order);
    CHECK(std::set<int>(order.begin(), order.end()) == range(10, 40));
  }
  CHECK((epochs[0] != epochs[1] && epochs[1] != epochs[2]));
  Batch<float> again = batch_of(*task, Split::train, 4), elsewhere = batch_of(*other, Split::train, 4);
  CHECK(images_in(again) == std::vector<int>(epochs[1].begin() + 10, epochs[1].begin() + 20));
  CHECK(images_in(elsewhere) != images_in(again));
}

TEST_CASE("the pixel order is NumPy's") {
  const Folder folder;
  write_small(folder.path / "mnist");
  for (const std::uint32_t seed : {92916u, 1u}) {
    const auto task =
        small(folder, "{validation_images: 10, permuted: true, permutation_seed: " + std::to_string(seed) + "}");
    const auto order = NumpyRandomState(seed).permutation(steps);
    Batch<float> batch = batch_of(*task, Split::test, 0);
    for (Index t = 0; t < steps; ++t) CHECK(batch.input(t, 3)[0] == float((20 * order[t] + 3) / 255.0));
  }
}

TEST_CASE("ten equal logits reach the baseline") {
  const Folder folder;
  write_small(folder.path / "mnist");
  const auto task = small<double>(folder, "{validation_images: 10}");
  const Batch<double> batch = batch_of(*task, Split::test, 0);
  CHECK(task->baseline() == doctest::Approx(std::log(10.0)));
  CHECK(trivial_loss(*task, batch) == doctest::Approx(task->baseline()).epsilon(1e-12));
  Matrix<double> output = Matrix<double>::Zero(10, 10);
  for (Index b = 0; b < 8; ++b) output(batch.labels()[b], b) = 1;
  output(9, 8) = output(0, 9) = 1;
  Ratio ratio;
  task->measure(output, targets_of(batch), {&ratio, 1});
  CHECK((ratio.sum == 8 && ratio.weight == 10));
}

TEST_CASE("places and names under which the files are found") {
  const SmallSet training(training_images), test(test_images);
  for (const char* place : {"mnist", "", "MNIST/raw"})
    for (const char* joint : {"-idx", ".idx"})
      for (const bool compressed : {false, true}) {
        const Folder folder;
        const auto put = [&](const std::string& stem, int dimensions, const std::string& bytes) {
          const fs::path file = folder.path / place / (stem + joint + std::to_string(dimensions) + "-ubyte");
          compressed ? idx_files::write_gzip(file.string() + ".gz", bytes) : idx_files::write(file, bytes);
        };
        put("train-images", 3, training.images);
        put("train-labels", 1, training.labels);
        put("t10k-images", 3, test.images);
        put("t10k-labels", 1, test.labels);
        CHECK(images_of(*small(folder, "validation_images: 10"), Split::test) == range(0, 15));
      }
}

TEST_CASE("missing and unfit files are told of with the mend") {
  const Folder folder;
  const fs::path mnist = folder.path / "mnist";
  const std::string fetch = "Fetch it with: stiefel data fetch mnist --data '" + folder.path.string() + "'";
  const auto says = [&](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  try {
    make<float>("pixel_mnist", "", {1, 1, ""});
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::data);
    says(error.what(),
         "the data directory is not set. Use --data DIR or set STIEFEL_DATA. Fetch it with: stiefel data fetch mnist "
         "--data 'DIR'");
  }
  says(refusal(folder),
       "pixel_mnist needs the MNIST training images, but there is no train-images-idx3-ubyte.gz or "
       "train-images-idx3-ubyte or ");
  says(refusal(folder), " in " + mnist.string() + " or " + folder.path.string());
  says(refusal(folder), fetch);

  write_small(mnist);
  CHECK(refusal(folder) == "accepted");
  says(refusal(folder, "validation_images: 40", Exit::usage), "validation_images is 40");
  const SmallSet training(training_images), test(test_images);
  const auto with = [&](const char* file, const std::string& bytes) {
    write_small(mnist);
    idx_files::write(mnist / file, bytes);
    return refusal(folder);
  };
  says(with("train-images-idx3-ubyte", training.images.substr(0, 100)),
       "ends after 84 of the 360 values that its header names. " + fetch);
  says(with("train-labels-idx1-ubyte", test.labels), "holds 40 images but");
  says(with("t10k-labels-idx1-ubyte", test.labels.substr(0, 22) + '\x0a'),
       "label number 14 is 10, expected a digit 0 to 9");
  says(with("t10k-images-idx3-ubyte", SmallSet(test_images, 2).images), "images of 9 pixels");
  says(with("t10k-images-idx3-ubyte", test.labels), "an IDX array of 1 dimensions, expected 3");
}

TEST_CASE("new images are read as those of the test set: scaled, in the order of the pixels, with their numbers") {
  const Folder folder;
  write_small(folder.path / "mnist");
  const std::string options = "{validation_images: 10, permuted: true, permutation_seed: 1, scale: 256}";
  const auto task = small(folder, options, 15);
  Batch<float> expected = batch_of(*task, Split::test, 0), batch;
  const auto reader = open("pixel_mnist", options, *task, (folder.path / "mnist/t10k-images-idx3-ubyte").string());
  for (Index b = 0; b < 15; ++b) {
    REQUIRE((reader->next() && reader->read(steps, batch)));
    CHECK(reader->name() == std::to_string(b));
    for (Index t = 0; t < steps; ++t) CHECK(batch.input(t, 0)[0] == expected.input(t, b)[0]);
  }
  CHECK(!reader->next());
}

TEST_CASE("the real digits") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "mnist")) {
    std::cout << "skipped: the real digits; STIEFEL_DATA names no folder with mnist/\n";
    return;
  }
  const auto task = make<float>("pixel_mnist", "validation_images: 0", {1, 1000, data});
  CHECK(task->shape().steps == 784);
  const auto count = [&](Split split, double& mean) {
    std::array<int, 10> counts{};
    double sum = 0;
    for (Index i = 0; i < task->batches(split); ++i) {
      const Batch<float> batch = batch_of(*task, split, i);
      for (const std::int32_t label : batch.labels()) ++counts.at(std::size_t(label));
      sum += batch.inputs().cast<double>().mean();
    }
    mean = sum / double(task->batches(split));
    return counts;
  };
  double mean = 0;
  CHECK(count(Split::train, mean) == std::array<int, 10>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
  CHECK(mean == doctest::Approx(0.130660).epsilon(1e-4));
  CHECK(count(Split::test, mean) == std::array<int, 10>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  CHECK(mean == doctest::Approx(0.132515).epsilon(1e-4));
  Batch<float> first = batch_of(*task, Split::test, 0);
  const std::vector<int> known = {7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
  for (Index b = 0; b < 10; ++b) CHECK(first.label(0, b) == known[std::size_t(b)]);
  const auto split = make<float>("pixel_mnist", "", {1, 50, data});
  CHECK((split->batches(Split::train) == 1100 && split->batches(Split::validation) == 100 &&
         split->batches(Split::test) == 200));
}
