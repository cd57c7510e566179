#pragma once

#include <optional>

#include "tests/support/op_harness.h"

namespace fluid::testing {

/// The ways in which the self-test breaks a definition.
enum class Break : uint8_t { gradient, forward, infer, cost, in_place };
std::string_view name_of(Break kind);

/// The table's definition of the test's op with one thing wrong; absent where there is nothing to
/// break: no gradient, no arithmetic of its own, a cost of zero, no operand of a result's type.
std::optional<OpDef> broken(const OpTest& test, Break kind);

/// Returns the faults that the harness finds.
Faults check_for(Break kind, const OpTest& test, const OpDef& def);

}  // namespace fluid::testing
