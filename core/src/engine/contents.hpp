// The sequences of a batch as text, to compare them.
#pragma once

#include <string>
#include <vector>

#include <stiefel/task.hpp>

namespace stiefel {

template <class T> void append_bytes(std::string& text, const T& number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Every number of a batch that counts, sequence by sequence.
template <class S> std::vector<std::string> contents(Batch<S>& batch, const TaskShape& shape) {
  std::vector<std::string> all;
  for (Index b = 0; b < batch.sequences(); ++b) {
    std::string text;
    append_bytes(text, batch.length(b));
    for (Index t = 0; t < batch.length(b); ++t) {
      if (shape.input == InputKind::dense)
        for (const S x : batch.input(t, b)) append_bytes(text, x);
      if (shape.input == InputKind::symbols) append_bytes(text, batch.symbol(t, b));
      if (shape.readout == ReadoutKind::last && t < batch.length(b) - 1) continue;
      append_bytes(text, batch.weight(t, b));
      if (shape.labels)
        append_bytes(text, batch.label(t, b));
      else
        for (const S x : batch.target(t, b)) append_bytes(text, x);
    }
    all.push_back(std::move(text));
  }
  return all;
}

}  // namespace stiefel
