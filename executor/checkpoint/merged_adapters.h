#pragma once

#include <set>
#include <string>
#include <vector>

#include "executor/checkpoint/adapter_ids.h"
#include "executor/checkpoint/parameter_file.h"
#include "frontend/lora.h"
#include "ir/function_ref.h"
#include "ir/tensor.h"

namespace fluid {

/// The adapters that are merged into the weights of a program.
class MergedAdapters {
 public:
  /// Updates the set for the parameters `loaded` from the file `path`. `adapters`: those of the
  /// program; `current` returns the present value of a parameter. Throws UserError, and changes
  /// nothing, if an adapter of the program, or one that it was trained on from, is one of the
  /// merged ones: its product would be added twice.
  void load(const LoadedParameters& loaded, const std::vector<LoraAdapter>& adapters,
            FunctionRef<Tensor(const std::string&)> current, const std::string& path);
  /// Remembers the id of the present values of an adapter, which may be trained on. Returns all
  /// origins of the adapter.
  const std::set<std::string>& add_origin(const std::string& weight, const std::string& id) {
    if (id != kNoAdapter) origins_[weight].insert(id);
    return origins_[weight];
  }
  const std::set<std::string>& ids() const { return ids_; }
  const AdapterOrigins& origins() const { return origins_; }
  /// Replaces ids and origins, for parameters that were restored.
  void restore(std::set<std::string> ids, AdapterOrigins origins) {
    ids_ = std::move(ids);
    origins_ = std::move(origins);
  }

 private:
  std::set<std::string> ids_;
  AdapterOrigins origins_;
};

}  // namespace fluid
