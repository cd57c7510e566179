#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fluid {

/// For messages about data that a step rejects: where the user finds the sample whose column for
/// `feed` holds `value`, "line 7 of 't.csv'"; "" when it is not known.
using SampleFinder = std::function<std::string(const std::string& feed, int64_t value)>;

}  // namespace fluid
