#include "ir/error.h"

#include <algorithm>

#include "ir/near.h"
#include "ir/text.h"

namespace fluid {

void throw_check_error(std::string_view what, std::source_location where) {
  throw InternalError(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                      std::string(what));
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  size_t best = std::max<size_t>(1, name.size() / 3) + 1;
  std::string_view found;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  constexpr size_t kMinLength = 3;  // minimum length of `name` for a prefix or suffix match
  for (const std::string& candidate : candidates) {
    if (!found.empty() || name.size() < kMinLength) break;
    if (candidate.starts_with(name) || candidate.ends_with("_" + std::string(name))) {
      found = candidate;
    }
  }
  return found.empty() ? "" : " (did you mean '" + ir::escape_control_characters(found) + "'?)";
}

}  // namespace fluid
