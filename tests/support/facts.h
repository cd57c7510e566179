#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace fluid {

/// Returns the facts that a message states: names in quotes, options, and words with a digit, such
/// as counts, types and lines of a file.
inline std::vector<std::string> facts_of(const std::string& message) {
  static const std::regex fact(R"('[^']*'|"[^"]*"|--[a-z][a-z-]*|[\w./?\[-]*\d[\w./:\]?-]*)");
  std::vector<std::string> facts;
  for (std::sregex_iterator it(message.begin(), message.end(), fact), end; it != end; ++it) {
    std::string text = it->str();
    while (text.find_last_of(":.?") == text.size() - 1) text.pop_back();
    facts.push_back(text);
  }
  return facts;
}

/// Whether `message` states the facts of `expected`, in any words. Where `expected` has no facts,
/// whether `message` contains it. tests/lint/messages.sh checks that tests throw every message.
inline ::testing::AssertionResult states(const std::string& message, const std::string& expected) {
  std::vector<std::string> facts = facts_of(expected);
  if (facts.empty()) facts.push_back(expected);
  for (const std::string& fact : facts) {
    if (message.find(fact) == std::string::npos) {
      return ::testing::AssertionFailure() << "no " << fact << " in: " << message;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fluid
