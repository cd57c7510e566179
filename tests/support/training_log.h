#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "ir/atomic_file.h"

namespace fluid {

/// Returns the log of `train --log-json` at `path`, without step times.
inline std::string log_without_times(const std::string& path) {
  return std::regex_replace(read_file(path), std::regex(",\"step_ms\":[^}]*"), "");
}

/// The lines of such a file whose "event" is this: "epoch", "validation", or "" for steps.
inline std::vector<nlohmann::json> logged(const std::string& path, const std::string& event = "") {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    if (json.value("event", "") == event) lines.push_back(std::move(json));
  }
  return lines;
}

}  // namespace fluid
