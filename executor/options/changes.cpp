#include "executor/options/changes.h"

#include <fmt/format.h>

#include <set>

namespace fluid {

std::string describe_changes(const std::map<std::string, std::string>& before,
                             const std::map<std::string, std::string>& now,
                             std::string_view old_label) {
  std::set<std::string> names;
  for (const auto* options : {&before, &now}) {
    for (const auto& [name, value] : *options) names.insert(name);
  }
  const auto text = [](const std::map<std::string, std::string>& options, const std::string& name) {
    const auto found = options.find(name);
    return found == options.end() ? "none" : found->second;
  };
  std::string all;
  for (const std::string& name : names) {
    const std::string was = text(before, name), is = text(now, name);
    if (was != is)
      all += fmt::format("{}{} {} ({} {})", all.empty() ? "" : ", ", name, is, old_label, was);
  }
  return all;
}

}  // namespace fluid
