#pragma once

#include <string>

namespace fluid {

/// Guesses the SPEC meant by a bare path, from its extension or the directory's contents. For
/// "rows.csv" it is "csv:rows.csv?label=COLUMN", for a directory of MNIST's files "mnist:d".
/// Returns "" without a guess.
std::string guessed_spec(const std::string& path);

}  // namespace fluid
