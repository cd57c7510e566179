#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/program.h"

namespace fluid {

/// Settings of the parameters that a pattern selects. A setting without a value stays as it is.
///
///   fl::minimize(loss, fl::AdamW{}, {.groups = {{.pattern = "*", .trainable = false},
///                                               {.pattern = "head", .trainable = true,
///                                                .lr_scale = 10, .decay_scale = 0}}});
struct ParameterGroup {
  /// Selects parameters by their names or the names of their layers: NamePattern::selects().
  std::string pattern;
  /// false: frozen; no gradient, optimizer state or update. Backward stops above the first
  /// parameter that trains.
  std::optional<bool> trainable = {};
  std::optional<double> lr_scale = {};     ///< multiplies the learning rate; >= 0
  std::optional<double> decay_scale = {};  ///< multiplies the weight decay; >= 0
  /// As in ParameterOptions; >= 0. The losses of recipes that were recorded before change, too.
  std::optional<double> l1 = {}, l2 = {}, max_norm = {};
  /// true: the selected batch norms normalise by their running statistics in training too, and do
  /// not update them, as PyTorch's batch norms in eval mode. false: batch statistics, and the
  /// running statistics follow them, even if gamma and beta are frozen, as in PyTorch.
  std::optional<bool> freeze_statistics = {};
};

/// Applies the groups in their order; a later group overrides an earlier one. The settings become
/// attributes of the recorded program, and save() includes them. Throws UserError, with similar
/// names, for a pattern that selects nothing.
void set_parameter_groups(ir::Graph& graph, const std::vector<ParameterGroup>& groups,
                          const Loc& loc = Loc::here());
void set_parameter_groups(Program& program, const std::vector<ParameterGroup>& groups,
                          const Loc& loc = Loc::here());

/// Whether a training step does not change the parameter or state: a frozen parameter or frozen
/// running statistics.
bool is_frozen_variable(const ir::Op& variable);

/// Freezes the running statistics of all batch norms.
void freeze_running_statistics(ir::Graph& graph);

}  // namespace fluid
