#pragma once

#include <cstdint>

#include "frontend/readers/column_table.h"
#include "frontend/readers/symbols.h"
#include "frontend/readers/table_use.h"

namespace fluid {

/// A text as ids of its characters, which are Unicode code points.
struct CharacterText {
  Symbols<int32_t> ids;
  /// The vocabulary: the characters in the order of their ids are the classes of kCharacterColumn.
  ColumnTablePtr table;
};

/// Column of ColumnTable::classes that holds the vocabulary.
inline constexpr const char* kCharacterColumn = "text";

/// Reads the UTF-8 text or the documents at the path of `use`. If no table is given, learns the
/// vocabulary from all of the text: its distinct characters in the order of their code points.
/// `documents`: whether each document is followed by the character of option end. Throws UserError
/// that names file and byte for bytes that are not UTF-8, and for a character outside the given
/// vocabulary, to which option unknown=1 gives the next id.
CharacterText read_characters(const TableUse& use, bool documents);

}  // namespace fluid
