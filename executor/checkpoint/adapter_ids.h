#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/tensor.h"

namespace fluid {

/// Adapted weight -> ids that its adapter had when it was loaded or merged into a file, and of what
/// it was trained on from.
using AdapterOrigins = std::map<std::string, std::set<std::string>>;

/// The id of an adapter that adds 0, as one does before its training.
inline constexpr std::string_view kNoAdapter = "0";

/// Returns a hash of the factors and the scale of an adapter, as hexadecimal text, or kNoAdapter if
/// `b` is 0. Does not depend on the dtype of factors that f32 can represent.
std::string adapter_id(const Tensor& a, const Tensor& b, double scale);

}  // namespace fluid
