/// The layout of the types that cross the border between the runtime and a plugin, as text in the plugin's tag: two compilers fit
/// together if they lay out all of them alike.
///
/// A type with public data is "Name=size/alignment/member@offset/…", any other "Name=size/alignment"; numbers are bytes.
/// Templates stand for themselves at float.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/activation.hpp>
#include <stiefel/cell.hpp>
#include <stiefel/entry.hpp>
#include <stiefel/initialiser.hpp>
#include <stiefel/linear_algebra.hpp>
#include <stiefel/optimizer.hpp>
#include <stiefel/parametrisation.hpp>
#include <stiefel/product.hpp>
#include <stiefel/task.hpp>

namespace stiefel::detail {

/// Writes text, or counts its characters if `to` is null.
struct LayoutText {
  char* to = nullptr;
  std::size_t size = 0;

  constexpr void add(std::string_view text) {
    for (const char c : text) {
      if (to) to[size] = c;
      ++size;
    }
  }
  constexpr void add(std::size_t number) {
    if (number >= 10) add(number / 10);
    const char digit = char('0' + number % 10);
    add(std::string_view(&digit, 1));
  }
  template <class T> constexpr void type(std::string_view name) {
    add(" ");
    add(name);
    add("=");
    add(sizeof(T));
    add("/");
    add(alignof(T));
  }
  constexpr void member(std::string_view name, std::size_t offset) {
    add("/");
    add(name);
    add("@");
    add(offset);
  }
};

#define STIEFEL_TYPE(T, ...) \
  {                          \
    using Type = T;          \
    text.type<Type>(#T);     \
    __VA_ARGS__              \
  }
#define STIEFEL_AT(name) text.member(#name, offsetof(Type, name));

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of classes with bases, which all compilers here support
constexpr void write_layout(LayoutText& text) {
  STIEFEL_TYPE(std::string)
  STIEFEL_TYPE(std::string_view)
  STIEFEL_TYPE(std::vector<double>)
  STIEFEL_TYPE(std::span<double>)
  STIEFEL_TYPE(std::unique_ptr<double>)
  STIEFEL_TYPE(std::function<void()>)
  STIEFEL_TYPE(std::shared_ptr<double>)
  STIEFEL_TYPE(Matrix<float>)
  STIEFEL_TYPE(Mat<float>)
  STIEFEL_TYPE(CMat<float>)
  STIEFEL_TYPE(Blocks<float>)
  STIEFEL_TYPE(Scratch<float>)
  STIEFEL_TYPE(Batch<float>)
  STIEFEL_TYPE(Parametrisation<float>)
  STIEFEL_TYPE(Dense<float>)
  STIEFEL_TYPE(Cell<float>)
  STIEFEL_TYPE(Maps<float>)
  STIEFEL_TYPE(GradientSink<float>)
  STIEFEL_TYPE(Task<float>)
  STIEFEL_TYPE(SequenceReader<float>)
  STIEFEL_TYPE(Outcome)
  STIEFEL_TYPE(Shuffle)
  STIEFEL_TYPE(Optimizer<float>)
  STIEFEL_TYPE(Activation<float>)
  STIEFEL_TYPE(PackedProduct<float>)
  STIEFEL_TYPE(Schema)
  STIEFEL_TYPE(Field<double>)
  STIEFEL_TYPE(Rng)
  STIEFEL_TYPE(Recorder)
  STIEFEL_TYPE(Archive)
  STIEFEL_TYPE(Error)
  STIEFEL_TYPE(Entry, STIEFEL_AT(role) STIEFEL_AT(name) STIEFEL_AT(meaning) STIEFEL_AT(make_options) STIEFEL_AT(
                          free_options) STIEFEL_AT(complex_pairs) STIEFEL_AT(create_float) STIEFEL_AT(create_double))
  STIEFEL_TYPE(PluginTable, STIEFEL_AT(table_size) STIEFEL_AT(entry_size) STIEFEL_AT(version) STIEFEL_AT(entries)
                                STIEFEL_AT(count) STIEFEL_AT(tag))
  STIEFEL_TYPE(Shape, STIEFEL_AT(rows) STIEFEL_AT(cols) STIEFEL_AT(complex))
  STIEFEL_TYPE(BlockSpec, STIEFEL_AT(name) STIEFEL_AT(size) STIEFEL_AT(rows) STIEFEL_AT(cols) STIEFEL_AT(manifold)
                              STIEFEL_AT(rate_scale) STIEFEL_AT(constant_norm) STIEFEL_AT(takes_noise))
  STIEFEL_TYPE(Spectrum, STIEFEL_AT(singular_values) STIEFEL_AT(eigenvalues))
  STIEFEL_TYPE(Claim, STIEFEL_AT(kind) STIEFEL_AT(low) STIEFEL_AT(high))
  STIEFEL_TYPE(Cost, STIEFEL_AT(refresh) STIEFEL_AT(apply) STIEFEL_AT(apply_adjoint) STIEFEL_AT(accumulate)
                         STIEFEL_AT(finish) STIEFEL_AT(materialise) STIEFEL_AT(pullback) STIEFEL_AT(efficiency))
  STIEFEL_TYPE(MapSpec, STIEFEL_AT(name) STIEFEL_AT(rows) STIEFEL_AT(cols) STIEFEL_AT(input))
  STIEFEL_TYPE(CellContext, STIEFEL_AT(units) STIEFEL_AT(complex) STIEFEL_AT(steps))
  STIEFEL_TYPE(Chunk<float>, STIEFEL_AT(first) STIEFEL_AT(steps) STIEFEL_AT(columns) STIEFEL_AT(active)
                                 STIEFEL_AT(saved) STIEFEL_AT(delta) STIEFEL_AT(dstate) STIEFEL_AT(dhidden)
                                     STIEFEL_AT(output_in_state) STIEFEL_AT(message_clip))
  STIEFEL_TYPE(TaskShape,
               STIEFEL_AT(input) STIEFEL_AT(input_size) STIEFEL_AT(output_size) STIEFEL_AT(readout) STIEFEL_AT(labels)
                   STIEFEL_AT(steps) STIEFEL_AT(streams) STIEFEL_AT(training_set) STIEFEL_AT(predicts_inputs))
  STIEFEL_TYPE(TaskContext, STIEFEL_AT(seed) STIEFEL_AT(batch) STIEFEL_AT(data_directory))
  STIEFEL_TYPE(DataFile, STIEFEL_AT(name) STIEFEL_AT(path))
  STIEFEL_TYPE(Metric, STIEFEL_AT(name) STIEFEL_AT(higher_is_better) STIEFEL_AT(units) STIEFEL_AT(exponential))
  STIEFEL_TYPE(Ratio, STIEFEL_AT(sum) STIEFEL_AT(weight))
  STIEFEL_TYPE(DataForm, STIEFEL_AT(output) STIEFEL_AT(inputs) STIEFEL_AT(outputs) STIEFEL_AT(input_mean)
                             STIEFEL_AT(input_scale) STIEFEL_AT(output_mean) STIEFEL_AT(output_scale))
  STIEFEL_TYPE(Targets<float>, STIEFEL_AT(values) STIEFEL_AT(labels) STIEFEL_AT(weights))
  STIEFEL_TYPE(ActivationOptions,
               STIEFEL_AT(kind) STIEFEL_AT(slope) STIEFEL_AT(trainable) STIEFEL_AT(shared) STIEFEL_AT(pairing)
                   STIEFEL_AT(form) STIEFEL_AT(epsilon) STIEFEL_AT(pairs) STIEFEL_AT(bias_init) STIEFEL_AT(bias_scale))
  STIEFEL_TYPE(Initialiser, STIEFEL_AT(kind) STIEFEL_AT(scale) STIEFEL_AT(file))
}
#pragma GCC diagnostic pop
#undef STIEFEL_TYPE
#undef STIEFEL_AT

/// `fields`, which has no end yet, and the layout.
template <std::size_t Size> consteval auto with_layout(const char (&fields)[Size]) {
  constexpr std::size_t length = [] {
    LayoutText count;
    write_layout(count);
    return count.size;
  }();
  std::array<char, Size + length + 1> tag{};
  LayoutText text{tag.data()};
  text.add(fields);
  write_layout(text);
  text.add("\x02");
  return tag;
}

}  // namespace stiefel::detail
