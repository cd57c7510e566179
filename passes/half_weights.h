#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fluid {

/// In mixed precision O2 a parameter "w" has a state "w.half": its value in half precision, which
/// forward and backward read. It is derived: whoever writes the parameter between steps refreshes
/// it, and files do not hold it.
std::string half_weight_of(std::string_view parameter);

/// The parameter that the state `name` would be the copy of; nothing for a name of another form.
std::optional<std::string_view> copied_parameter(std::string_view name);

}  // namespace fluid
