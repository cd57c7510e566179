#include "frontend/tokenizers/pre_tokens.h"

#include <algorithm>
#include <array>
#include <limits>

#include "frontend/tokenizers/unicode.h"

namespace fluid {
namespace {

constexpr std::array<std::string_view, 7> kContractions = {"'s", "'t",  "'re", "'ve",
                                                           "'m", "'ll", "'d"};
constexpr std::string_view kLongS = "'\u017F";  // long s: matches 's if case is ignored

/// A run of code points of one class.
struct Run {
  size_t end = 0, last = 0;  ///< byte offsets of the run's end and of its last code point
};

/// Returns the longest run of at most `most` code points of class `wanted` that starts at byte
/// `at`. Bytes that are not UTF-8 end the run.
Run run_of(std::string_view text, size_t at, CharClass wanted,
           int most = std::numeric_limits<int>::max()) {
  Run run{at, at};
  for (int i = 0; i < most && run.end < text.size(); ++i) {
    size_t next = run.end;
    char32_t c = 0;
    if (!next_code_point(text, next, c) || class_of(c) != wanted) break;
    run = {next, run.end};
  }
  return run;
}

/// Returns the end of the match of \s+(?!\S)|\s+ in the whitespace `run`. If text follows a run of
/// several code points, the match leaves the last one to the next pre-token.
size_t end_of_space(std::string_view text, size_t at, const Run& run) {
  return run.end < text.size() && run.last > at ? run.last : run.end;
}

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char same_case(char c) { return c; }

/// Returns the length in bytes of the contraction, such as 's, at byte `at`, or 0 if there is none.
/// `convert` is applied to each character before the comparison.
size_t contraction_length(std::string_view text, size_t at, char (*convert)(char)) {
  for (const std::string_view contraction : kContractions) {
    const std::string_view found = text.substr(at, contraction.size());
    if (std::ranges::equal(found, contraction, {}, convert)) return contraction.size();
  }
  return 0;
}

size_t gpt2_length(std::string_view text, size_t at) {
  if (const size_t length = contraction_length(text, at, same_case)) return length;
  size_t next = at;
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
  const Run run = run_of(text, start, found);
  return (found == CharClass::space ? end_of_space(text, at, run) : run.end) - at;
}

size_t cl100k_length(std::string_view text, size_t at) {
  if (const size_t length = contraction_length(text, at, lower_case)) return length;
  if (text.substr(at).starts_with(kLongS)) return kLongS.size();
  size_t next = at;
  char32_t c = 0;
  if (!next_code_point(text, next, c)) return 0;
  const CharClass first = class_of(c);
  const bool may_precede_word =
      first == CharClass::other || (first == CharClass::space && c != U'\r' && c != U'\n');
  const size_t word = may_precede_word ? next : at;
  const Run letters = run_of(text, word, CharClass::letter);
  if (letters.end > word) return letters.end - at;
  if (first == CharClass::number) return run_of(text, at, CharClass::number, 3).end - at;
  const size_t symbol = c == U' ' ? next : at;
  const Run symbols = run_of(text, symbol, CharClass::other);
  if (symbols.end > symbol) {
    return std::min(text.find_first_not_of("\r\n", symbols.end), text.size()) - at;
  }
  const Run space = run_of(text, at, CharClass::space);
  const size_t newline = text.substr(at, space.end - at).find_last_of("\r\n");
  if (space.end < text.size() && newline != std::string_view::npos) return newline + 1;
  return end_of_space(text, at, space) - at;
}

}  // namespace

size_t pre_token_length(PreTokens pattern, std::string_view text, size_t at) {
  return pattern == PreTokens::gpt2 ? gpt2_length(text, at) : cl100k_length(text, at);
}

}  // namespace fluid
