#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// The precision that NoAmp or the user's lists demand for an op. It overrides the op's class.
struct AmpOverride {
  DType dtype = DType::f32;
  std::string reason;
};
std::optional<AmpOverride> amp_override(const ir::Op& op, const AmpOptions& options);

}  // namespace fluid
