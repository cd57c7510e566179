#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/parameter_file.h"
#include "frontend/lora.h"
#include "ir/function_ref.h"
#include "ir/tensor.h"

namespace fluid {

/// Name of the metadata entry of a parameter file that lists the LoRA adapters merged into its
/// weights: the results of adapter_id(), separated by spaces.
inline constexpr std::string_view kMergedAdaptersMetadata = "fluid.lora.merged";

/// Returns a hash of the factors and the scale of an adapter, as hexadecimal text. Does not depend
/// on the dtype of factors that f32 can represent.
std::string adapter_id(const Tensor& a, const Tensor& b, double scale);

/// Converts a set of adapter ids to the text of kMergedAdaptersMetadata and back.
std::string adapter_ids_text(const std::set<std::string>& ids);
std::set<std::string> parse_adapter_ids(const std::string& text);

/// The adapters that are merged into the weights of a program.
class MergedAdapters {
 public:
  /// Updates the set for the parameters `loaded` from the file `path`. `adapters`: those of the
  /// program; `current` returns the present value of a parameter. Throws UserError, and changes
  /// nothing, if an adapter of the program, or one that it was trained on from, is one of the
  /// merged ones: its product would be added twice.
  void load(const LoadedParameters& loaded, const std::vector<LoraAdapter>& adapters,
            FunctionRef<Tensor(const std::string&)> current, const std::string& path);
  /// Remembers the present values `a` and `b` of an adapter, which may be trained on. Returns its
  /// id.
  std::string add_origin(const LoraAdapter& adapter, const Tensor& a, const Tensor& b);
  const std::set<std::string>& ids() const { return ids_; }
  /// Replaces the ids, for parameters that were restored.
  void restore(std::set<std::string> ids) {
    ids_ = std::move(ids);
    origins_.clear();
  }

 private:
  std::set<std::string> ids_;
  /// Adapted weight -> ids that its adapter had when it was loaded or merged into a file.
  std::map<std::string, std::set<std::string>> origins_;
};

}  // namespace fluid
