#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fluid {

/// A record of a text file, such as a line.
struct TextRecord {
  std::string_view text = {};    ///< the record with its line end
  std::string_view before = {};  ///< text between the start of line `first_line` and the record
  int64_t first_line = 1;        ///< 1-based line where `before` starts

  int64_t line() const;  ///< 1-based line where the record starts
};

/// How a text divides into records.
struct RecordSyntax {
  /// Returns the offset of the first record. `text`: the first bytes of the text. Throws UserError,
  /// naming `source_name`, if the text has another encoding.
  size_t (*begin)(std::string_view text, std::string_view source_name);
  /// Returns the offset after the record that starts at byte `begin` of `text`, and after its line
  /// end. Returns npos if the record may continue after `text`.
  size_t (*end_of_record)(std::string_view text, size_t begin);
  /// Whether `record` is an empty line, which counts as no record.
  bool (*is_empty)(std::string_view record);
  const char* hint;  ///< end of the message about a record that is too long
};

/// Records that are lines. A line of blanks counts as no record.
const RecordSyntax& line_syntax();

}  // namespace fluid
