#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fluid {

/// Name of the half-precision state of `parameter`: "w.half" for parameter "w". In mixed precision
/// O2, forward and backward read this state, and the optimizer updates the f32 master weight "w".
/// Code that writes "w" between steps must also refresh "w.half". Checkpoints omit "w.half".
std::string half_weight_name(std::string_view parameter);

/// Inverse of half_weight_name(): "w" for the name "w.half"; nullopt for other names.
std::optional<std::string_view> parameter_of_half_weight(std::string_view name);

}  // namespace fluid
