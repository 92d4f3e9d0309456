/// Tables that are described by a struct: its each() lists the columns, which both defines the table and appends rows.
///
///   struct Row {
///     std::int64_t step;
///     std::vector<double> rates;
///     template <class V> void each(V&& column) const {
///       column({"step", "1", "optimizer step"}, step);  // the row axis comes first
///       column({"lr", "1", "learning rate", "group"}, rates);
///     }
///   };
#pragma once

#include <complex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "record/recorder_thread.hpp"

namespace stiefel {

struct ColumnText {
  std::string_view name, units, long_name;
  std::string_view axis = {};  ///< beyond the row axis; empty: one value per row
  std::string_view description = {};
};

/// The type on the disk of a value or of the entries of a list.
template <class T> constexpr ColumnType column_type() {
  if constexpr (std::is_same_v<T, bool>)
    return ColumnType::u1;
  else if constexpr (std::is_integral_v<T>)
    return ColumnType::i8;
  else if constexpr (std::is_floating_point_v<T>)
    return ColumnType::f8;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return ColumnType::complex;
  else
    return column_type<typename T::value_type>();
}

/// The table that the columns of Row::each() define. Names and types come from `like`; its values do not matter.
template <class Row>
Table table_of(std::string group, std::vector<Axis> axes, const Row& like, Index chunk_rows = 1024, Plot plot = {}) {
  Table table{std::move(group), {}, std::move(axes), {}, chunk_rows, std::move(plot)};
  like.each([&]<class T>(const ColumnText& text, const T&) {
    Column column{std::string(text.name),        std::string(text.units), std::string(text.long_name),
                  std::string(text.description), column_type<T>(),        {}};
    if (!text.axis.empty()) column.axes.emplace_back(text.axis);
    if (table.row.name.empty())
      table.row = std::move(column);
    else
      table.columns.push_back(std::move(column));
  });
  return table;
}

template <class T> void flatten(const T& value, std::vector<double>& to) {
  if constexpr (std::is_arithmetic_v<T>)
    to.push_back(double(value));
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    to.insert(to.end(), {value.real(), value.imag()});
  else
    for (const auto& entry : value) flatten(entry, to);
}

template <class Row> void append_row(RecorderThread& recorder, int table, const Row& row) {
  std::vector<double> values;
  row.each([&](const ColumnText&, const auto& value) { flatten(value, values); });
  recorder.append(table, values.at(0), std::span<const double>(values).subspan(1));
}

}  // namespace stiefel
