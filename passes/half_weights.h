#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fluid {

/// Name of the half-precision state of `parameter`. In mixed precision O2, forward and backward of
/// parameter "w" read the state "w.half". The state is derived: code that writes the parameter
/// between steps refreshes it, and checkpoints omit it.
std::string half_weight_of(std::string_view parameter);

/// The parameter whose half-precision state is called `name`; nullopt for names of another form.
std::optional<std::string_view> copied_parameter(std::string_view name);

}  // namespace fluid
