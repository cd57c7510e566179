#pragma once

#include <cstdint>

#include "frontend/readers/column_table.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/symbols.h"

namespace fluid {

/// A text encoded as character ids. A character is a Unicode code point.
struct CharacterText {
  Symbols<int32_t> ids;
  /// The vocabulary is classes.at(kCharacterColumn): the characters in the order of their ids.
  ColumnTablePtr table;
  SkippedRecords skipped;  ///< lines that were left out
};

/// Key of the vocabulary in ColumnTable::classes.
inline constexpr const char* kCharacterColumn = "text";

/// Reads UTF-8 text from the path in `context`. If `context` has no table, learns the vocabulary
/// from the text: its distinct characters in the order of their code points. `documents`: whether
/// to append the character of option end to each document. Throws UserError, naming the file and
/// the byte offset, for invalid UTF-8 and for a character outside the vocabulary. With option
/// unknown=1, such characters get one common id instead: the size of the vocabulary.
CharacterText read_characters(const ColumnTableContext& context, bool documents);

}  // namespace fluid
