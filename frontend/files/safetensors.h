#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/files/byte_source.h"
#include "ir/tensor.h"

namespace fluid {

/// The contents of a safetensors file (https://huggingface.co/docs/safetensors): named tensors in
/// the order of their bytes, and a map of strings.
struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;
  bool by_fluid = false;  ///< the file has the checksum that Fluid writes

  const Tensor* find(std::string_view name) const;  ///< null when absent
};

/// Reads a safetensors file by the exact rules of the format. The header is one JSON object of at
/// most 100 MB without duplicate keys. The tensors cover the bytes after the header without holes
/// or overlaps, and their sizes match their shapes. Throws UserError naming the file and the error
/// for any other file, for an unsupported dtype, and for a wrong Fluid checksum. The returned
/// metadata omits the checksum. Large tensors are memory-mapped (see FileBytes).
TensorFile read_safetensors(const std::string& path);
/// Parses a safetensors file given as bytes, like read_safetensors(). `what` names the source in
/// messages.
TensorFile parse_safetensors(const ByteSource& bytes, const std::string& what);
TensorFile parse_safetensors(std::string_view bytes, const std::string& what);

/// Writes a safetensors file atomically. Tensors are sorted by decreasing dtype size, then by name,
/// so that all are aligned. The metadata entry "fluid.checksum" is the XXH3 hash of the tensors'
/// bytes in decimal. Throws UserError for a duplicate name, a name that is not UTF-8, or
/// "__metadata__".
void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       std::map<std::string, std::string> metadata = {});

}  // namespace fluid
