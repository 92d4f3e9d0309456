/// Arithmetic expressions modulo m: the generators of the xLSTM paper (Beck et al. 2024), and their values.
///
/// An expression is a list of symbols: the digits 0 … m − 1, then + − * = ( ).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/random.hpp>

namespace stiefel {

class ModularArithmetic {
 public:
  using Expression = std::vector<std::int32_t>;

  /// `operations` are those that occur, such as "+-*".
  ModularArithmetic(std::int64_t modulus, std::string_view operations) : modulus_(modulus) {
    for (const char operation : operations) operations_.push_back(symbol(operation));
  }

  /// The number of one of + - * = ( ).
  std::int32_t symbol(char sign) const { return std::int32_t(modulus_) + std::int32_t(signs.find(sign)); }

  /// `operands` digits with operations between them.
  Expression flat(Rng& rng, std::int64_t operands) const {
    Expression expression{digit(rng)};
    for (std::int64_t k = 1; k < operands; ++k) {
      expression.push_back(operation(rng));
      expression.push_back(digit(rng));
    }
    return expression;
  }
  /// `length` symbols with brackets: d, −d, (d), (−d), and from five symbols on (left operation right), where the length
  /// of `left` is uniform from 1 to `length` − 4.
  Expression nested(Rng& rng, std::int64_t length) const {
    Expression expression;
    nest(rng, length, expression);
    return expression;
  }

  /// The value, from 0 to m − 1: * binds first, then + and − from left to right.
  std::int32_t value(const Expression& expression) const {
    Reader reader{expression};
    return std::int32_t(sum(reader));
  }

 private:
  static constexpr std::string_view signs = "+-*=()";

  struct Reader {
    const Expression& expression;
    std::size_t at = 0;
    bool takes(std::int32_t symbol) {
      const bool there = at < expression.size() && expression[at] == symbol;
      at += there;
      return there;
    }
  };

  std::int32_t digit(Rng& rng) const { return std::int32_t(rng.integer(0, modulus_)); }
  std::int32_t operation(Rng& rng) const {
    return operations_[std::size_t(rng.integer(0, std::int64_t(operations_.size())))];
  }

  void nest(Rng& rng, std::int64_t length, Expression& expression) const {
    const bool bracketed = length > 2;
    if (bracketed) expression.push_back(symbol('('));
    if (length < 5) {
      if (length % 2 == 0) expression.push_back(symbol('-'));
      expression.push_back(digit(rng));
    } else {
      const std::int64_t left = rng.integer(1, length - 3);
      nest(rng, left, expression);
      expression.push_back(operation(rng));
      nest(rng, length - 3 - left, expression);
    }
    if (bracketed) expression.push_back(symbol(')'));
  }

  std::int64_t sum(Reader& reader) const {
    std::int64_t total = product(reader);
    for (;;) {
      if (reader.takes(symbol('+')))
        total = (total + product(reader)) % modulus_;
      else if (reader.takes(symbol('-')))
        total = (total + modulus_ - product(reader)) % modulus_;
      else
        return total;
    }
  }
  std::int64_t product(Reader& reader) const {
    std::int64_t total = factor(reader);
    while (reader.takes(symbol('*'))) total = total * factor(reader) % modulus_;
    return total;
  }
  std::int64_t factor(Reader& reader) const {
    if (reader.takes(symbol('-'))) return (modulus_ - factor(reader)) % modulus_;
    if (!reader.takes(symbol('('))) return reader.expression[reader.at++];
    const std::int64_t inner = sum(reader);
    reader.takes(symbol(')'));
    return inner;
  }

  std::int64_t modulus_;
  Expression operations_;
};

}  // namespace stiefel
