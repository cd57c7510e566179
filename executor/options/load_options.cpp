#include "executor/options/load_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace fluid {
namespace {

constexpr size_t kMaxNames = 8;

std::string list_of(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < std::min(items.size(), kMaxNames); ++i) {
    text += (i > 0 ? ", " : "") + items[i];
  }
  if (items.size() > kMaxNames) text += fmt::format(" and {} more", items.size() - kMaxNames);
  return text;
}

std::string line_of(const char* what, const std::vector<std::string>& items) {
  return items.empty() ? "" : fmt::format("{} {}: {}\n", items.size(), what, list_of(items));
}

std::vector<std::string> quoted(std::vector<std::string> names) {
  for (std::string& name : names) name = "'" + name + "'";
  return names;
}

}  // namespace

std::string LoadReport::text() const {
  std::vector<std::string> shapes;
  for (const Mismatch& m : mismatched) {
    shapes.push_back(
        fmt::format("'{}' is {}, but '{}' is {}", m.file_name, m.file_type, m.name, m.type));
  }
  return fmt::format("{} parameters loaded\n", loaded.size()) +
         line_of("missing, left as they are", quoted(missing)) +
         line_of("not in this file of adapters, left as they are", quoted(kept)) +
         line_of("of another shape, left as they are", shapes) + line_of("unused", quoted(unused)) +
         line_of("ignored", quoted(ignored));
}

}  // namespace fluid
