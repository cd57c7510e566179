#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// ir::verify, and verify_op for each op.
void verify_program(const ir::Program& program);

/// Reads a .fluid or .fir file, told apart by content. Attributes left out get their defaults; the
/// result is verified, ops included. Throws UserError that starts with `path` and, where the fault
/// lies in an op of a text, its line.
std::unique_ptr<ir::Program> load_program(const std::string& path);

/// The same of a program's text or of what ir::serialize() gave; `file_name` is for messages.
std::unique_ptr<ir::Program> read_program(std::string_view contents, const std::string& file_name);

/// Writes text when `path` ends in ".fir", else a .fluid file; atomically. Throws UserError when
/// the program is not valid or the file cannot be written.
void save_program(const ir::Program& program, const std::string& path);

}  // namespace fluid
