#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/function_ref.h"
#include "passes/target.h"

namespace fluid {

struct PackingKernel {
  KernelCandidate kernel;
  double current_seconds = 0;  ///< predicted time of the fastest kernel that needs no copies
  double saved_seconds() const { return current_seconds - kernel.seconds; }
};

/// Returns the fastest library kernel of `op` whose layouts differ from those of `op` at most in
/// the operands for which `may_pack` is true. Returns nullopt if this kernel accepts the current
/// layouts, if it is more than 3 % slower than the kernels that do or than generated code, or if
/// more than an eighth of an operand would be padding.
std::optional<PackingKernel> packing_kernel(const ir::Op& op, int64_t batch, const Target& target,
                                            FunctionRef<bool(Value)> may_pack);

/// Copies of values in the layouts in which library kernels read them.
class PackedCopies {
 public:
  /// Returns the copy of `v` in `layout`. Records the copy in the graph of `v` at the first call.
  Value get(Value v, const std::optional<Layout>& layout);

 private:
  std::map<std::pair<Value, std::string>, Value> copies_;
};

}  // namespace fluid
