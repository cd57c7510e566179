#include "ir/lexer.h"

#include <algorithm>

#include "ir/text.h"

namespace fluid::ir {
namespace {

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "the end of the file";
    case Token::Kind::value:
      return "'%" + token.text + "'";
    case Token::Kind::string:
      return "the string " + quote(token.text);
    default:
      return "'" + token.text + "'";
  }
}

void Lexer::fail(size_t offset, const std::string& what) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  // on the first line rfind() returns npos, and npos + 1 is 0
  const size_t column = offset - (before.rfind('\n') + 1) + 1;
  throw UserError(file_and_line(file_, line) + ":" + std::to_string(column) + ": " + what);
}

void Lexer::skip_whitespace() {
  for (;;) {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') ++at_;
    if (peek() != '/' || peek(1) != '/') return;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
}

std::string Lexer::consume_while(bool (*matches)(char)) {
  const size_t start = at_;
  while (at_ < text_.size() && matches(text_[at_])) ++at_;
  return std::string(text_.substr(start, at_ - start));
}

std::string Lexer::lex_number() {
  const size_t start = at_;
  if (peek() == '-') ++at_;
  consume_while(is_digit);
  if (peek() == '.') {
    ++at_;
    consume_while(is_digit);
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '-' || peek() == '+') ++at_;
    consume_while(is_digit);
  }
  return std::string(text_.substr(start, at_ - start));
}

char Lexer::lex_escape() {
  const size_t start = at_++;
  const char c = peek();
  ++at_;
  if (c == 'n') return '\n';
  if (c == 't') return '\t';
  if (c == 'r') return '\r';
  if (c == '"' || c == '\\') return c;
  if (c == 'x') {
    const int high = hex_digit(peek());
    const int low = hex_digit(peek(1));
    if (high < 0 || low < 0) fail(start, "expected two hexadecimal digits (0-9, a-f) after \\x");
    at_ += 2;
    return static_cast<char>(high * 16 + low);
  }
  fail(start, "unknown escape in a string; there are \\\" \\\\ \\n \\t \\r and \\x1f");
}

std::string Lexer::lex_string(size_t start) {
  std::string s;
  ++at_;
  while (peek() != '"') {
    if (at_ >= text_.size() || peek() == '\n') fail(start, "the string has no closing quote");
    s += peek() == '\\' ? lex_escape() : text_[at_++];
  }
  ++at_;
  return s;
}

Token Lexer::next() {
  skip_whitespace();
  Token token{Token::Kind::end, "", at_};
  if (at_ >= text_.size()) return token;
  const char c = peek();
  if (c == '"') {
    token.kind = Token::Kind::string;
    token.text = lex_string(at_);
  } else if (c == '%') {
    ++at_;
    token.kind = Token::Kind::value;
    token.text = consume_while(is_identifier_character);
    if (token.text.empty()) fail(token.offset, "expected a value's name after '%'");
  } else if (is_digit(c) || (c == '-' && is_digit(peek(1)))) {
    token.kind = Token::Kind::number;
    token.text = lex_number();
  } else if (is_identifier_character(c) && c != '.') {
    token.kind = Token::Kind::word;
    token.text = consume_while(is_identifier_character);
  } else if (std::string_view("=(){}[]:,@#?-").find(c) != std::string_view::npos) {
    token.kind = Token::Kind::punct;
    token.text = c;
    ++at_;
  } else {
    const auto byte = static_cast<unsigned char>(c);
    const std::string shown = byte >= 0x20 && byte < 0x7f ? std::string(1, c) : quote({&c, 1});
    fail(at_, "unexpected character: " + shown);
  }
  return token;
}

}  // namespace fluid::ir
