// doctest's implementation and main(), compiled once for all unit tests. A SIMD target that this CPU lacks skips the
// test.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>
#include <stiefel/error.hpp>
#include "sdk/kernel/simd_choice.hpp"

int main(int count, char** words) {
  try {
    stiefel::choose_simd_target();
  } catch (const stiefel::Error& error) {
    std::cerr << "skipped: " << error.what() << "\n";
    return 77;
  }
  return doctest::Context(count, words).run();
}
