#include "frontend/tokenizers/pre_tokens.h"

#include "frontend/tokenizers/unicode.h"

namespace fluid {
namespace {

/// Returns the end of the run of code points of class `wanted` that starts at byte `at`. Sets
/// `last` to the start of the run's last code point. Bytes that are not UTF-8 end the run.
size_t end_of_run(std::string_view text, size_t at, CharClass wanted, size_t& last) {
  while (at < text.size()) {
    size_t next = at;
    char32_t c = 0;
    if (!next_code_point(text, next, c) || class_of(c) != wanted) break;
    last = at;
    at = next;
  }
  return at;
}

}  // namespace

size_t pre_token_length(std::string_view text, size_t at) {
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(at).starts_with(contraction)) return contraction.size();
  }
  size_t next = at, last = at;
  char32_t c = 0;
  if (!next_code_point(text, next, c)) return 0;
  CharClass found = class_of(c);
  size_t start = at;
  if (c == U' ' && next < text.size()) {
    size_t after = next;
    if (!next_code_point(text, after, c)) return next - at;
    if (class_of(c) != CharClass::space) {
      found = class_of(c);
      start = next;
    }
  }
  const size_t end = end_of_run(text, start, found, last);
  // If several spaces precede a word, the last space starts the next pre-token.
  const bool leaves_last = found == CharClass::space && end < text.size() && last > at;
  return (leaves_last ? last : end) - at;
}

}  // namespace fluid
