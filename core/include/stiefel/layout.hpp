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

// STIEFEL_TYPE(T, a, b, …) writes T and its members; the preprocessor repeats STIEFEL_NEXT up to 16 times.
#define STIEFEL_TYPE(T, ...)                         \
  {                                                  \
    using Type = T;                                  \
    text.type<Type>(#T);                             \
    __VA_OPT__(STIEFEL_4(STIEFEL_NEXT(__VA_ARGS__))) \
  }
#define STIEFEL_NEXT(name, ...)             \
  text.member(#name, offsetof(Type, name)); \
  __VA_OPT__(STIEFEL_LATER STIEFEL_EMPTY()(__VA_ARGS__))
#define STIEFEL_LATER() STIEFEL_NEXT
#define STIEFEL_EMPTY
#define STIEFEL_4(...) STIEFEL_2(STIEFEL_2(STIEFEL_2(STIEFEL_2(__VA_ARGS__))))
#define STIEFEL_2(...) STIEFEL_1(STIEFEL_1(STIEFEL_1(STIEFEL_1(__VA_ARGS__))))
#define STIEFEL_1(...) __VA_ARGS__

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
  STIEFEL_TYPE(Entry, role, name, meaning, make_options, free_options, complex_pairs, create_float, create_double,
               open_float, open_double)
  STIEFEL_TYPE(PluginTable, table_size, entry_size, version, entries, count, tag)
  STIEFEL_TYPE(Shape, rows, cols, complex)
  STIEFEL_TYPE(BlockSpec, name, size, rows, cols, manifold, rate_scale, constant_norm, takes_noise)
  STIEFEL_TYPE(Spectrum, singular_values, eigenvalues)
  STIEFEL_TYPE(Claim, kind, low, high)
  STIEFEL_TYPE(Cost, refresh, apply, apply_adjoint, accumulate, finish, materialise, pullback, efficiency)
  STIEFEL_TYPE(MapSpec, name, rows, cols, input)
  STIEFEL_TYPE(CellContext, units, complex, steps)
  STIEFEL_TYPE(Chunk<float>, first, steps, columns, active, saved, delta, dstate, dhidden, output_in_state,
               message_clip)
  STIEFEL_TYPE(TaskShape, input, input_size, output_size, readout, labels, steps, streams, training_set,
               predicts_inputs)
  STIEFEL_TYPE(TaskContext, seed, batch, data_directory, trained)
  STIEFEL_TYPE(DataFile, name, path)
  STIEFEL_TYPE(Metric, name, higher_is_better, units, exponential, parts, value, by_step, of_sequence)
  STIEFEL_TYPE(Ratio, sum, weight)
  STIEFEL_TYPE(Baseline, name, loss)
  STIEFEL_TYPE(Remark, option, sentence)
  STIEFEL_TYPE(DataForm, output, inputs, outputs, input_mean, input_scale, output_mean, output_scale)
  STIEFEL_TYPE(Trained, shape, form, alphabet)
  STIEFEL_TYPE(Targets<float>, values, labels, weights, steps, sequences, sequence_count)
  STIEFEL_TYPE(ActivationOptions, kind, slope, trainable, shared, pairing, form, epsilon, pairs, bias_init, bias_scale)
  STIEFEL_TYPE(Initialiser, kind, scale, file)
}
#pragma GCC diagnostic pop
#undef STIEFEL_TYPE
#undef STIEFEL_NEXT
#undef STIEFEL_LATER
#undef STIEFEL_EMPTY
#undef STIEFEL_4
#undef STIEFEL_2
#undef STIEFEL_1

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
