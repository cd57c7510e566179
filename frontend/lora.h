#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/program.h"
#include "ir/function_ref.h"

namespace fluid {

/// Options of low-rank adapters.
struct Lora {
  int64_t rank = 8;
  double alpha = 8;  ///< the product of the adapters is scaled by alpha / rank
};

/// Adds low-rank adapters to linear weights (Hu et al., "LoRA: low-rank adaptation of large
/// language models", ICLR 2022; the defaults of peft's LoraConfig). `pattern` selects weights by
/// name or layer (NamePattern::selects()). For each selected weight w [in, out], adds the
/// parameters w.lora_a [in, rank], Kaiming-uniform with slope sqrt(5), and w.lora_b [rank, out],
/// zeros. Each product x w becomes x w + alpha / rank * (x a) b, and each product x w^T likewise.
///
/// Adapters replace w by w + alpha / rank * a b wherever the program reads w. So a weight that
/// anything but these products reads gets none: if `pattern` has a wildcard, such weights are left
/// out, and returned as text for a message; otherwise they are an error. Call lora() after all ops
/// that read the weights are recorded.
///
/// Freezes all other parameters, and all running statistics. set_parameter_groups() can unfreeze
/// some, such as a new head. Executor::save() then writes what is_saved_with_lora().
/// Executor::load() reads the base weights from one file and the adapters from another.
///
/// Throws UserError if the pattern selects no weight of a linear layer, or only weights that are
/// left out, if a weight has adapters already, if rank or alpha is not positive, or if rank is
/// above 8 and above min(in, out) of all selected weights.
std::vector<std::string> lora(Program& program, const std::string& pattern,
                              const Lora& options = {}, const Loc& loc = Loc::here());

/// Adds the adapters listed in the file `path`, which Executor::save() or `fluidrun train --lora`
/// wrote, unless the program has them already, and leaves the other variables that were trained
/// with them trainable. To load their values, call Executor::load(). Throws UserError if the file
/// has no adapters, if the program lacks an adapted weight or reads it other than lora() allows, or
/// if its adapters of a weight have another rank or alpha.
void lora_from_file(Program& program, const std::string& path, const Loc& loc = Loc::here());

/// The adapters of one weight in a recorded program.
struct LoraAdapter {
  std::string weight, a, b;  ///< names of the parameters
  int64_t rank = 0;
  double scale = 0;  ///< alpha / rank
  double alpha() const { return scale * static_cast<double>(rank); }
};
std::vector<LoraAdapter> lora_adapters(const ir::Program& program);

/// Throws UserError if a program recorded a use of an adapted weight that its adapters do not
/// change, so that merging them into the weight would change the results.
void require_exact_merge(const ir::Program& program);

/// Whether the parameter is a LoRA adapter.
bool is_lora_adapter(const ir::Op& param);
/// Whether Executor::save() writes the variable of a program with adapters: an adapter, a trainable
/// variable, or one that was trained in the file of lora_from_file().
bool is_saved_with_lora(const ir::Op& variable);

/// Names of metadata entries of a parameter file: the adapters, "fc0.w:rank=8,alpha=8;...", and the
/// other variables in the file, "head.w;head.b".
inline constexpr std::string_view kLoraMetadata = "fluid.lora";
inline constexpr std::string_view kTrainedWithLoraMetadata = "fluid.lora.trained";
/// Returns these metadata entries for a recorded program. They are empty if it has no adapters.
/// `is_saved` tells which variables the file holds, as is_saved_with_lora() does.
std::map<std::string, std::string> lora_metadata(const ir::Program& program,
                                                 FunctionRef<bool(const ir::Op&)> is_saved);
/// Returns the names of the variables that these metadata entries list: adapters and others.
std::vector<std::string> variables_in_lora_metadata(
    const std::map<std::string, std::string>& metadata);

/// Returns the adapters that these metadata entries list, each as "fc0.w:rank=8,alpha=8.0".
std::vector<std::string> adapters_in_lora_metadata(
    const std::map<std::string, std::string>& metadata);

/// Parses "rank=8,alpha=16". Throws UserError for other text, and for a setting that is given
/// twice.
Lora parse_lora(const std::string& settings);

}  // namespace fluid
