#pragma once

#include <string>

namespace fluid {

/// Guesses the data SPEC for a path from the file extension or the contents of the directory. For
/// example, "rows.csv" gives "csv:rows.csv?label=COLUMN", and a directory `d` with MNIST files
/// gives "mnist:d". Returns "" if there is no guess.
std::string guess_spec(const std::string& path);

}  // namespace fluid
