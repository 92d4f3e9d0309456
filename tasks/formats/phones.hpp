/// TIMIT's phonetic transcriptions (.phn): a line "start end label" for each phone, in samples, the end exclusive.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stiefel {

/// The 61 labels of TIMIT and the 39 classes of Lee & Hon (1989) that they are folded to, both in alphabetical order.
extern const std::array<std::string_view, 61> phone_labels;
extern const std::array<std::string_view, 39> folded_phone_labels;

/// Class of a label among the 39; −1 for the glottal stop q, which has none.
std::int32_t folded_phone(std::int32_t label);

struct Phone {
  std::int64_t start, end;  ///< start ≤ sample < end
  std::int32_t label;       ///< place in phone_labels
};

/// The phones of a transcription, in order and without overlap. Error(Exit::data) that begins with `name`, says which
/// line is wrong and why, and ends with `mend`.
std::vector<Phone> parse_phones(std::string_view text, const std::string& name, const std::string& mend);
std::vector<Phone> read_phones(const std::string& path, const std::string& mend);

/// Label of the phone that covers a sample, the last phone lasting for ever; −1 before the first and in gaps.
std::int32_t phone_at(std::span<const Phone> phones, std::int64_t sample);

}  // namespace stiefel
