#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/files/byte_source.h"
#include "ir/tensor.h"

namespace fluid {

/// What a safetensors file holds (https://huggingface.co/docs/safetensors): named tensors in the
/// order of their bytes, and a map of strings.
struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;
  bool by_fluid = false;  ///< the file carries the checksum that Fluid writes

  const Tensor* find(std::string_view name) const;  ///< null when absent
};

/// Reads by the format's exact rules: a header of at most 100 MB that is one JSON object without
/// duplicate keys; tensors that cover the bytes after it without hole or overlap; sizes that equal
/// the products of the shapes. Anything else, and a dtype that Fluid lacks, is a UserError that
/// names the file and what is wrong in it; so is a file whose bytes are not those of the checksum
/// that Fluid wrote into it. The metadata comes without that. Large tensors are those of FileBytes.
TensorFile read_safetensors(const std::string& path);
/// The same from bytes; `what` names the source in messages.
TensorFile parse_safetensors(const ByteSource& bytes, const std::string& what);
TensorFile parse_safetensors(std::string_view bytes, const std::string& what);

/// Writes atomically, wider dtypes first and then by name, so that every tensor is aligned. The
/// tensors' bytes get a checksum, the metadata "fluid.checksum": their XXH3 hash in decimal.
/// UserError for a name given twice, one that is not UTF-8, or "__metadata__".
void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       std::map<std::string, std::string> metadata = {});

}  // namespace fluid
