#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ir/limits.h"
#include "ir/type.h"

namespace fluid::ir {

// The small pieces of the text form that the printer and the parser agree on.

/// A letter or '_', then letters, digits, '_' and '.'; at most kMaxNameLength characters.
bool is_identifier(std::string_view name);

/// An identifier that is not a word of the grammar ("output", "graph").
bool is_op_name(std::string_view name);

/// A to Z as a to z; the rest stays.
std::string lowercase(std::string_view s);

/// With \n \t \r and \x1f for control characters: names from a file in a message of one line.
std::string one_line(std::string_view s);

/// In double quotes, one line, with \" and \\ for quotes and backslashes.
std::string quote(std::string_view s);

/// The shortest text that reads back to the same bits, always recognisable as a float: "1.0",
/// "1e-05", "nan", "-inf". Every NaN prints as "nan".
std::string float_text(double value);

/// "@main", or "@\"my net\"" when the name is no identifier.
std::string graph_text(std::string_view name);

/// The inverse of Layout::str for a tensor of `rank` dims; absent when `text` is not one.
std::optional<Layout> layout_from(std::string_view text, int64_t rank);

}  // namespace fluid::ir
