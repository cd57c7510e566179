#pragma once

#include <string>

namespace fluid {

/// The SPEC that somebody means who names a path alone, by its ending or what the directory holds:
/// "csv:rows.csv?label=COLUMN" for "rows.csv", "mnist:d" for a directory of MNIST's files. Empty
/// when nothing can be told.
std::string guessed_spec(const std::string& path);

}  // namespace fluid
