#include "passes/set_length.h"

#include "ir/length.h"
#include "ops/arguments.h"
#include "ops/record.h"
#include "ops/scan.h"
#include "ops/table.h"
#include "passes/pass.h"

namespace fluid {
namespace {

void substitute(ir::Op& op, int64_t length) {
  op.attrs = ir::at_length(op.attrs, length);
  for (ir::Result& r : op.results) r.type = r.type.at_length(length);
  if (!is_scan(op)) return;
  // The extents of the operands are constant now, because ops are processed in graph order.
  const ScanParts parts = scan_parts(op);
  if (parts.steps == 0) op.attrs.set("steps", op.operands.at(parts.carries).shape()[0].size);
}

/// Checks that the types inferred for sequence length `length` equal the recorded types, which hold
/// for any sequence length.
void check_types(ir::Op& op, int64_t length) {
  const std::string at = " with the length " + std::to_string(length);
  std::vector<Type> types;
  try {
    fill_default_attrs(op);
    if (is_scan(op)) set_argument_types(op);
    types = infer_types(op);
  } catch (const UserError& e) {
    throw UserError(e.what() + at);
  }
  if (types == result_types(op)) return;
  throw UserError(op.loc, op.name + ": computes " + to_string(types) + at + ", not " +
                              to_string(result_types(op)) + " as recorded for any length");
}

bool run_set_length(ir::Program& program, const Options& options, const Target&) {
  return fluid::set_sequence_length(program, options.sequence_length);
}

}  // namespace

bool set_sequence_length(ir::Program& program, int64_t length) {
  if (!ir::has_length(program)) return false;
  for (const auto& graph : program.graphs) {
    for (const auto& op : graph->ops) substitute(*op, length);
  }
  for (const auto& graph : program.graphs) {
    for (const auto& op : graph->ops) check_types(*op, length);
  }
  return true;
}

Pass set_length_pass() {
  return {.name = "set_length",
          .doc = "Replaces the length by its value for the step (--length 128).",
          .needs = {},
          .provides = {},
          .run = run_set_length};
}

}  // namespace fluid
