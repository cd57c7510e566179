#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fluid {

/// Returns the place of the first sample whose column for `feed` holds `value`, for messages about
/// rejected data: "line 7 of 't.csv'", or "" when it is not known.
using SampleFinder = std::function<std::string(const std::string& feed, int64_t value)>;

}  // namespace fluid
