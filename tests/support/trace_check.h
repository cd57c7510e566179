#pragma once

// Checks for all Chrome traces, according to Google's "Trace Event Format".

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace fluid::testing {

/// Expects that the complete events of each thread are nested or disjoint. `but`: a category to
/// ignore, whose times may come from another clock.
inline void expect_nested(const nlohmann::json& events, const std::string& but) {
  constexpr double kRounding = 2e-3;  // microseconds
  using Span = std::pair<double, double>;
  std::map<std::pair<int64_t, int64_t>, std::vector<Span>> threads;
  for (const auto& event : events) {
    if (event.at("ph") != "X" || event.at("cat") == but) continue;
    const double begin = event.at("ts");
    threads[{event.at("pid"), event.at("tid")}].emplace_back(begin,
                                                             begin + event.at("dur").get<double>());
  }
  for (auto& [thread, spans] : threads) {
    std::ranges::sort(spans, [](const Span& a, const Span& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> open;  // ends
    for (const auto& [begin, end] : spans) {
      while (!open.empty() && open.back() <= begin + kRounding) open.pop_back();
      EXPECT_TRUE(open.empty() || end <= open.back() + kRounding)
          << begin << " to " << end << " lies over an event that ends at " << open.back();
      open.push_back(end);
    }
  }
}

/// Expects fields that the format knows, of the right kind, and nested events; see above.
inline nlohmann::json checked_trace(const std::string& text, const std::string& but = "") {
  const auto trace = nlohmann::json::parse(text);
  const std::string unit = trace.at("displayTimeUnit");
  EXPECT_TRUE(unit == "ms" || unit == "ns") << unit;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_TRUE(event.at("name").is_string()) << event;
    EXPECT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer());
    EXPECT_TRUE(event.at("args").is_object()) << event;
    for (const auto& [key, value] : event.at("args").items()) {
      EXPECT_TRUE(value.is_string() || value.is_number()) << key << " of " << event;
    }
    if (event.at("ph") == "M") {
      const std::string name = event.at("name");
      EXPECT_TRUE(name == "process_name" || name == "thread_name") << name;
      EXPECT_TRUE(event.at("args").at("name").is_string()) << event;
      continue;
    }
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_TRUE(event.at("cat").is_string()) << event;
    EXPECT_TRUE(event.at("ts").is_number() && event.at("ts").get<double>() >= 0) << event;
    EXPECT_TRUE(event.at("dur").is_number() && event.at("dur").get<double>() > 0) << event;
  }
  expect_nested(trace.at("traceEvents"), but);
  return trace;
}

}  // namespace fluid::testing
