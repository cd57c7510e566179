#pragma once

#include <map>
#include <set>
#include <string>

#include "executor/checkpoint/adapter_ids.h"
#include "frontend/readers/column_table.h"

namespace fluid {

/// The metadata of a file of parameters.
struct ParameterMetadata {
  ColumnTablePtr column_table = nullptr;         ///< of the training data; null: none
  std::set<std::string> merged_adapters = {};    ///< MergedAdapters::ids()
  AdapterOrigins adapter_origins = {};           ///< MergedAdapters::origins()
  std::map<std::string, std::string> lora = {};  ///< lora_metadata()

  /// Converts to the entries of a safetensors file: name -> text. Absent metadata has no entry.
  std::map<std::string, std::string> entries() const;
  /// Converts from entries. Throws UserError, which names `file`, for a damaged column table.
  static ParameterMetadata parse(const std::map<std::string, std::string>& entries,
                                 const std::string& file);
};

}  // namespace fluid
