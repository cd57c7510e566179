#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Verifies the program with ir::verify(), and each op with verify_op().
void verify_program(const ir::Program& program);

/// Reads a .fluid or .fir file; detects the format from the contents. Fills in default attributes
/// and verifies the program and its ops. Throws UserError with a message that starts with `path`
/// and, for an invalid op of a text file, its line.
std::unique_ptr<ir::Program> load_program(const std::string& path);

/// Reads a program from text or from the bytes of ir::serialize(). `file_name` is the file name in
/// error messages.
std::unique_ptr<ir::Program> read_program(std::string_view contents, const std::string& file_name);

/// Returns the program in the .fluid format, without a checksum. Throws UserError for an unknown
/// op.
std::string serialize_program(const ir::Program& program);
/// Decodes the result of serialize_program(). Does not verify the program, and fills in no default
/// attributes. `file_name`: as for read_program().
std::unique_ptr<ir::Program> deserialize_program(std::string_view bytes,
                                                 const std::string& file_name);

/// Writes the program as text if `path` ends in ".fir", else in the .fluid format. Writes the file
/// atomically. Throws UserError when the program is invalid or the file cannot be written.
void save_program(const ir::Program& program, const std::string& path);

}  // namespace fluid
