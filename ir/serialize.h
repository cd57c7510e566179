#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace fluid::ir {

/// Latest version of the .fluid format. serialize() writes it for programs with extents that depend
/// on the sequence length, and kOldestFileFormat for other programs. deserialize() accepts both.
/// Format 1 used other op names.
inline constexpr uint32_t kFileFormat = 3;
inline constexpr uint32_t kOldestFileFormat = 2;

/// Function that returns the version of an op's definition, at least 1; 0 for an unknown op.
using OpVersion = std::function<int(std::string_view op)>;

/// Encodes a verified program as a FlatBuffer with the schema program.fbs and the identifier FLPG.
/// Equal programs give equal bytes. Only the last component of source file paths is kept. Throws
/// UserError for an op unknown to `version`.
std::string serialize(const Program& program, const OpVersion& version);

/// Appends the XXH3 hash of `bytes` (8 bytes, little-endian). Unlike FlatBuffers' verifier, the
/// hash detects changed scalars.
std::string append_checksum(std::string bytes);
/// Checks and removes the hash that append_checksum() appends. Throws UserError, starting with
/// `file_name`, when the hash does not match.
std::string_view strip_checksum(std::string_view file, const std::string& file_name);

/// Whether `bytes` has the identifier of a .fluid file.
bool is_fluid_file(std::string_view bytes);

/// Decodes the output of serialize() from an untrusted source. Memory and time are proportional to
/// the size of the file. The caller must verify() the result. Throws UserError, starting with
/// `file_name`, for a damaged file, another file type or format, an unknown op, or a newer op
/// version.
std::unique_ptr<Program> deserialize(std::string_view bytes, const std::string& file_name,
                                     const OpVersion& version);

}  // namespace fluid::ir
