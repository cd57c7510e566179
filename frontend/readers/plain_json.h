#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fluid {

/// The value of one key in one line of a file of JSON objects.
struct LineValue {
  std::vector<int64_t> shape = {};   ///< extents of nested arrays; empty for a scalar
  std::vector<double> numbers = {};  ///< NaN for a number that is missing
  std::string text = {};
  bool is_text = false, is_integer = true;
  bool has_missing = false;  ///< whether a number is missing
};

inline constexpr size_t kMaxJsonDepth = 8;  ///< maximum nesting of arrays
inline constexpr double kMaxJsonInteger =
    0x1p53 - 1;  ///< doubles represent all integers up to this

struct PlainJsonEntry {
  std::string_view key;            ///< a part of the parsed text
  std::optional<LineValue> value;  ///< nullopt: null
};

/// Parses a JSON object several times faster than a general parser, if it is plain: its keys
/// differ, keys and strings are ASCII without escapes, and its values are strings, numbers within
/// the limits of a column, booleans, null, or arrays of numbers, booleans and null, whose lengths
/// are positive and equal at each depth. Returns nullopt for all other text, be it JSON or not.
std::optional<std::vector<PlainJsonEntry>> parse_plain_json(std::string_view text);

}  // namespace fluid
