#include "ops/op_def.h"

namespace fluid {

OpDef scan_op() {
  return OpDef{
      .name = "scan",
      .doc =
          "Runs the body graph `steps` times (a recurrence). The body's `arg` ops stand for the "
          "carries, the current element of each sequence, and the captures. The body's outputs "
          "are the next carries, then the values to collect. fluid::scan() records the op.",
      .inputs = {{"x",
                  "the initial carries; the sequences [steps, ...]; then the captures, which are "
                  "the same in each step",
                  true, true}},
      .attrs = {{"body", GraphRef{}, "the body graph", true},
                {"carries", int64_t{0}, "number of carries", true},
                {"sequences", int64_t{0}, "number of sequences", true},
                {"steps", int64_t{1},
                 "number of steps; 0: the first extent of the sequences, a multiple of the length",
                 true},
                {"reverse", false, "step from the last element of the sequences to the first"}},
      .outputs = {{"y", "the final carries, then the collected values [steps, ...]", true}},
      // The result types come from infer_scan().
      .infer = [](const InferCtx&) { return std::vector<Type>{}; },
      .grad = NoGrad{},  // passes/scan_gradient.h builds the backward scan from the body
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {},
      .lower = Scan{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
