#pragma once

#include <string>
#include <string_view>

#include "ir/text.h"

namespace fluid {

/// Formats text from a file for a message: on one line, and at most 40 characters of it.
inline std::string excerpt(std::string_view text) {
  constexpr size_t kMaxLength = 40;
  return ir::escape_control_characters(text.substr(0, kMaxLength)) +
         (text.size() > kMaxLength ? "..." : "");
}

}  // namespace fluid
