#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/init.h"
#include "frontend/program.h"

namespace fluid {

class NamePattern;

/// Settings of the parameters that a pattern selects. An absent setting leaves the parameters
/// unchanged.
///
///   fl::minimize(loss, fl::AdamW{}, {.groups = {{.pattern = "*", .trainable = false},
///                                               {.pattern = "head", .trainable = true,
///                                                .lr_scale = 10, .decay_scale = 0}}});
struct ParameterGroup {
  /// Selects parameters by their names or their layers' names; see NamePattern::selects(). Selects
  /// LoRA adapters only if it contains "lora_".
  std::string pattern;
  /// false: frozen; no gradient, optimizer state or update. The backward pass skips ops that depend
  /// on no trainable parameter.
  std::optional<bool> trainable = {};
  std::optional<double> lr_scale = {};     ///< multiplies the learning rate; >= 0
  std::optional<double> decay_scale = {};  ///< multiplies the weight decay; >= 0
  /// See ParameterOptions; >= 0. Settings l1 and l2 also change the losses of recipes that are
  /// already recorded.
  std::optional<double> l1 = {}, l2 = {}, max_norm = {};
  std::optional<Init> init = {};  ///< replaces the initialiser
  /// true: in training, too, the selected batch norms normalise by their running statistics and
  /// leave the statistics unchanged, like PyTorch's batch norms in eval mode. false: they normalise
  /// by the batch statistics and update the running statistics, even if gamma and beta are frozen,
  /// as in PyTorch.
  std::optional<bool> freeze_statistics = {};
};

/// Applies the groups in order. If several groups set the same option of a parameter, the last one
/// wins. The settings become attributes of the recorded program, and Program::save() includes them.
/// Throws UserError for a pattern that selects nothing; the message suggests similar names.
void set_parameter_groups(ir::Graph& graph, const std::vector<ParameterGroup>& groups,
                          const Loc& loc = Loc::here());
void set_parameter_groups(Program& program, const std::vector<ParameterGroup>& groups,
                          const Loc& loc = Loc::here());

/// Returns whether `pattern` selects the parameter `param` for settings. A pattern selects LoRA
/// adapters only if it contains "lora_".
bool selects_parameter(const NamePattern& pattern, const ir::Op& param);

/// Returns whether `variable` is a frozen parameter or frozen running statistics. Training steps do
/// not update frozen variables.
bool is_frozen_variable(const ir::Op& variable);

/// Freezes the running statistics of all batch norms.
void freeze_running_statistics(ir::Graph& graph);

}  // namespace fluid
