#include "ops/table.h"
#include "passes/passes.h"

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

bool run(ir::Program& program, const Options& options, const Target&) {
  if (!options.dtype) return false;
  bool changed = false;
  for (const auto& op : program.main().ops) {
    changed |= retype_attributes(*op, *options.dtype);
    for (ir::Result& r : op->results) changed |= retype(r.type, *options.dtype);
  }
  return changed;
}

}  // namespace

Pass set_dtype_pass() {
  return {.name = "set_dtype",
          .doc = "Makes every float of the program the dtype asked for (--dtype f64).",
          .needs = {},
          .gives = {},
          .run = run};
}

}  // namespace fluid
