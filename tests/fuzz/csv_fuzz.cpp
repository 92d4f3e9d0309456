// A CSV file is refused, or each of its rows has as many fields as the header.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/csv.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  try {
    CsvReader reader({reinterpret_cast<const char*>(data), size}, "f", size % 2 ? ',' : ';');
    std::vector<CsvField> row;
    std::size_t bytes = 0;
    while (reader.next(row)) {
      if (row.size() != reader.header().size()) std::abort();
      for (const CsvField& field : row) {
        double value = 0;
        bytes += field.text.size();
        if (!parse_number(field.text, value)) shown(field.text);
      }
      reader.place(row.back().offset);
    }
    if (bytes > size) std::abort();
    reader.column("x");
  } catch (const Error&) {
  }
  return 0;
}
