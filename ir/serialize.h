#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace fluid::ir {

/// The format of .fluid files that this version writes and reads. Format 1 had other names of ops.
inline constexpr uint32_t kFileFormat = 2;

/// The version of an op's definition, at least 1; 0 for an op that does not exist.
using OpVersion = std::function<int(std::string_view op)>;

/// A program as FlatBuffers of program.fbs, identifier FLPG. Equal programs give equal bytes. Of
/// source files the last component is kept. `program` must be verified. Throws UserError when
/// `version` does not know an op.
std::string serialize(const Program& program, const OpVersion& version);

/// What is written to disk: the bytes that serialize() gave, then 8 of their XXH3 hash,
/// little-endian, because a changed number would be another program and not a broken one.
std::string sealed(std::string bytes);
/// The bytes that were sealed. Throws UserError that starts with `file_name` when the file does not
/// end in their hash.
std::string_view unsealed(std::string_view file, const std::string& file_name);

/// Whether `bytes` carry the identifier of a .fluid file.
bool is_fluid_file(std::string_view bytes);

/// Reads what serialize() wrote, and trusts nothing: takes memory and time in proportion to the
/// size of the file. The result still has to pass verify(). Throws UserError that starts with
/// `file_name`: not a .fluid file, damaged, of another format, an unknown op, an op of a newer
/// version.
std::unique_ptr<Program> deserialize(std::string_view bytes, const std::string& file_name,
                                     const OpVersion& version);

}  // namespace fluid::ir
