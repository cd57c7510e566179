#pragma once

#include <regex>
#include <string>

#include "ir/atomic_file.h"

namespace fluid {

/// What `train --log-json` wrote to the file at `path`, without how long its steps took.
inline std::string log_without_times(const std::string& path) {
  return std::regex_replace(read_file(path), std::regex(",\"step_ms\":[^}]*"), "");
}

}  // namespace fluid
