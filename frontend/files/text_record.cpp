#include "frontend/files/text_record.h"

#include <algorithm>

namespace fluid {
namespace {

size_t no_mark(std::string_view, std::string_view) { return 0; }

size_t end_of_line(std::string_view text, size_t begin) {
  const size_t end = text.find('\n', begin);
  return end == std::string_view::npos ? end : end + 1;
}

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

int64_t TextRecord::line() const { return first_line + std::ranges::count(before, '\n'); }

const RecordSyntax& line_syntax() {
  static constexpr RecordSyntax syntax = {no_mark, end_of_line, is_blank_line, ""};
  return syntax;
}

}  // namespace fluid
