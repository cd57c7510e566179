#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/files/byte_source.h"
#include "frontend/files/safetensors_header.h"
#include "ir/tensor.h"

namespace fluid {

/// The contents of a safetensors file (https://huggingface.co/docs/safetensors): named tensors in
/// the order of their offsets, and metadata.
struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;
  bool written_by_fluid = false;  ///< whether the file has Fluid's checksum

  const Tensor* find(std::string_view name) const;  ///< null if no tensor has this name
};

/// Reads and validates a safetensors file. The header must be one JSON object of at most 100 MB
/// without duplicate keys. The tensors must cover the bytes after the header without gaps or
/// overlaps, and their sizes must match their shapes. Throws UserError naming the file and the
/// error for an invalid file, an unsupported dtype, or a wrong Fluid checksum. The returned
/// metadata omits the checksum. Large tensors are memory-mapped (see FileBytes).
TensorFile read_safetensors(const std::string& path);
/// Parses the bytes of a safetensors file, like read_safetensors(). `source_name` replaces the path
/// in messages.
TensorFile parse_safetensors(const ByteSource& bytes, const std::string& source_name);
/// Parses and validates the header of a safetensors file. Returns the entries sorted by offset,
/// with offsets from the start of the file. Does not verify the Fluid checksum, because this would
/// read the whole file.
TensorHeader parse_safetensors_header(const ByteSource& bytes, const std::string& source_name);
TensorFile parse_safetensors(std::string_view bytes, const std::string& source_name);

/// Writes a safetensors file atomically. Tensors are sorted by decreasing element size, then by
/// name, so that every tensor is aligned to its element size. Adds the metadata entry
/// "fluid.checksum", the XXH3 hash of the tensors' bytes in decimal. Throws UserError for a
/// duplicate name, a name that is not UTF-8, the name "__metadata__", or a header over 100 MB.
void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       std::map<std::string, std::string> metadata = {});

}  // namespace fluid
