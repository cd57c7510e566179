#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// What the user says of an op's precision, beyond its class.
struct AmpWish {
  DType dtype = DType::f32;
  std::string reason;
};
std::optional<AmpWish> amp_wish(const ir::Op& op, const AmpOptions& options);

}  // namespace fluid
