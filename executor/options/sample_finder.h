#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fluid {

/// Returns the location of the first sample that has `value` in its column for `feed`: "t.csv:7",
/// or "" when the location is not known. Used in messages about rejected data.
using SampleFinder = std::function<std::string(const std::string& feed, int64_t value)>;

}  // namespace fluid
