#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/attr.h"

namespace fluid::testing {

/// The attribute that a script wrote: a number, a text, a list of numbers, or a type as {"dtype",
/// "shape"}.
inline Attr golden_attr(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) {
    const auto extents = value.at("shape").get<std::vector<int64_t>>();
    const DType dtype = *parse_dtype(value.at("dtype").get<std::string>());
    return Type{dtype, Shape(extents.begin(), extents.end()), {}};
  }
  const auto is_float = [](const nlohmann::json& v) { return v.is_number_float(); };
  if (std::ranges::any_of(value, is_float)) return value.get<std::vector<double>>();
  return value.get<std::vector<int64_t>>();
}

inline Attrs golden_attrs(const nlohmann::json& object) {
  Attrs attrs;
  for (const auto& [name, value] : object.items()) attrs.set(name, golden_attr(value));
  return attrs;
}

}  // namespace fluid::testing
