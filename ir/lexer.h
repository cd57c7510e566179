#pragma once

#include <string>
#include <string_view>

#include "ir/error.h"

namespace fluid::ir {

struct Token {
  enum class Kind : uint8_t {
    word,    ///< an identifier
    value,   ///< %name; `text` is the name without %
    number,  ///< a number; `text` is the source text: -12, 1e-05
    string,  ///< a quoted string; `text` is unescaped, without the quotes
    punct,   ///< one punctuation character
    end,     ///< end of the text
  };
  Kind kind = Kind::end;
  std::string text;
  size_t offset = 0;  ///< offset of the first character in the source text
};

/// Splits .fir text into tokens. Skips white space and `//` comments.
class Lexer {
 public:
  /// `text` and `file_name` must outlive the lexer. `file_name` appears in error messages.
  Lexer(std::string_view text, std::string_view file_name) : text_(text), file_(file_name) {}

  /// Returns the next token. Throws UserError for a character that cannot start a token and for a
  /// malformed string.
  Token next();

  /// Throws UserError "file.fir:3:14: what", with the line and the column (in bytes) of `offset`.
  [[noreturn]] void fail(size_t offset, const std::string& what) const;

 private:
  void skip_whitespace();
  std::string consume_while(bool (*matches)(char));
  std::string lex_number();
  std::string lex_string(size_t start);
  char lex_escape();
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  std::string_view text_;
  std::string_view file_;
  size_t at_ = 0;
};

/// Returns a token as text for the message "expected ... but found ...", for example "'%x'" or "the
/// end of the file".
std::string describe(const Token& token);

}  // namespace fluid::ir
