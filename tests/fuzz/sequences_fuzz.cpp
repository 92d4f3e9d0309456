// Sequences of a CSV file are refused, or have d numbers a step and a target where there should be one.
#include <cstdlib>

#include <stiefel/error.hpp>
#include "tasks/formats/sequence_set.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  for (const bool classes : {false, true})
    for (const bool last : {false, true}) {
      try {
        Classes names;
        const SequenceSet set = parse_csv_sequences({reinterpret_cast<const char*>(data), size}, "f",
                                                    {"id", {}, {"y"}, ',', classes, last}, names);
        const std::vector<Index> order = names.order();
        for (const Sequence& s : set.sequences) {
          if (Index(s.inputs.size()) != set.features * s.steps || Index(s.targets.size()) != (last ? 1 : s.steps))
            std::abort();
          for (const double y : s.targets)
            if (classes && y == y && order.at(std::size_t(y)) >= Index(names.names().size())) std::abort();
        }
      } catch (const Error&) {
      }
    }
  return 0;
}
