#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/pass.h"

namespace fluid {
namespace {

bool retype(Type& type, DType to) {
  if (!is_float(type.dtype) || type.dtype == to) return false;
  type.dtype = to;
  return true;
}

bool retype_attributes(ir::Op& op, DType to) {
  bool changed = false;
  for (const auto& [name, attr] : Attrs(op.attrs)) {
    const Type* type = std::get_if<Type>(&attr);
    if (type == nullptr) continue;
    Type wanted = *type;
    if (!retype(wanted, to)) continue;
    op.attrs.set(name, wanted);
    changed = true;
  }
  return changed;
}

/// Sets the dtype of the results of a source to `to`. For other ops, infers the result types again
/// from the changed operands, because some ops, such as metrics, have results of a fixed dtype.
bool retype_results(ir::Op& op, DType to) {
  bool changed = false;
  if (source_kind(op) != SourceKind::none) {
    for (ir::Result& r : op.results) changed |= retype(r.type, to);
    return changed;
  }
  const std::vector<Type> types = infer_types(op);
  for (size_t i = 0; i < types.size(); ++i) {
    Type& type = op.results.at(i).type;
    changed |= type != types[i];
    type = types[i];
  }
  return changed;
}

bool retype_graph(ir::Graph& graph, DType to) {
  bool changed = false;
  for (const auto& op : graph.ops) {
    if (is_scan(*op)) {
      changed |= set_argument_types(*op);
      changed |= retype_graph(*scan_parts(*op).body, to);
    }
    changed |= retype_attributes(*op, to);
    changed |= retype_results(*op, to);
  }
  return changed;
}

bool run_set_dtype(ir::Program& program, const Options& options, const Target&) {
  return options.dtype && retype_graph(program.main(), *options.dtype);
}

}  // namespace

Pass set_dtype_pass() {
  return {.name = "set_dtype",
          .doc = "Sets the dtype of every float value (--dtype f64).",
          .needs = {},
          .provides = {},
          .run = run_set_dtype};
}

}  // namespace fluid
