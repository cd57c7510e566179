#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/limits.h"
#include "ir/type.h"

namespace fluid::ir {

// Text helpers that the printer and the parser share.

/// Whether `c` is one of 0 to 9.
bool is_digit(char c);
/// Whether `c` may occur in an identifier: an ASCII letter, a digit, '_' or '.'.
bool is_identifier_character(char c);

/// Whether `name` matches [A-Za-z_][A-Za-z0-9_.]* and has at most kMaxNameLength characters.
bool is_identifier(std::string_view name);

/// Whether `name` is an identifier but not a keyword of the grammar ("output", "graph").
bool is_op_name(std::string_view name);

/// Returns the parts of `s` between commas: {"a", "", "b"} for "a,,b".
std::vector<std::string> split_at_commas(std::string_view s);

/// Converts A to Z to lower case; other characters are unchanged.
std::string lowercase(std::string_view s);

/// Escapes control characters (\n, \t, \r, \x1f), so that a name read from a file fits a one-line
/// message.
std::string escape_control_characters(std::string_view s);

/// Returns "t.csv:7", as compilers write line 7 of a file.
std::string file_and_line(std::string_view file, int64_t line);

/// Puts `s` in double quotes and escapes quotes, backslashes and control characters.
std::string quote(std::string_view s);

/// Returns the shortest decimal text that parses back to the same bits and is written as a float:
/// "1.0", "1e-05", "nan", "-inf". Every NaN prints as "nan".
std::string float_text(double value);

/// Returns '@' and `name`. Quotes a name that is not an identifier: "@main", "@\"my net\"".
std::string graph_reference(std::string_view name);

/// Parses the output of Layout::str() for a tensor of `rank` dims. Returns nullopt when `text` is
/// not a layout.
std::optional<Layout> parse_layout(std::string_view text, int64_t rank);

}  // namespace fluid::ir
