#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Runs ir::verify, and verify_op on each op.
void verify_program(const ir::Program& program);

/// Reads a .fluid or .fir file; the contents decide which. Fills in default attributes and verifies
/// the program with its ops. Throws UserError that starts with `path` and, for a faulty op of a
/// text file, its line.
std::unique_ptr<ir::Program> load_program(const std::string& path);

/// Reads a program from text or from the bytes of ir::serialize(). `file_name` appears in messages.
std::unique_ptr<ir::Program> read_program(std::string_view contents, const std::string& file_name);

/// Writes text when `path` ends in ".fir", else a .fluid file. The write is atomic. Throws
/// UserError when the program is invalid or the file cannot be written.
void save_program(const ir::Program& program, const std::string& path);

}  // namespace fluid
