#include "ops/table.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ops/arguments.h"
#include "ops/length.h"
#include "ops/op_table.h"
#include "ops/scan.h"

namespace fluid {

std::span<const OpDef> op_table() {
  static const std::vector<OpDef> table = [] {
    std::vector<OpDef> ops = gather_ops();
    std::sort(ops.begin(), ops.end(),
              [](const OpDef& a, const OpDef& b) { return *a.name < *b.name; });
    return ops;
  }();
  return table;
}

const OpDef* find_op(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const OpDef*> defs;
    for (const OpDef& d : op_table()) defs.emplace(*d.name, &d);
    return defs;
  }();
  const auto found = by_name.find(name);
  return found != by_name.end() ? found->second : nullptr;
}

const OpDef& op_named(std::string_view name, const Loc& loc) {
  if (const OpDef* def = find_op(name)) return *def;
  std::vector<std::string> names;
  for (const OpDef& d : op_table()) names.push_back(*d.name);
  throw UserError(loc, "no op '" + std::string(name) + "'" + did_you_mean(name, names));
}

const OpDef& def_of(const ir::Op& op) {
  const OpDef* def = find_op(op.name);
  if (def == nullptr) throw InternalError("op '" + op.name + "' is not in the table");
  return *def;
}

std::vector<Type> infer_types(const ir::Op& op) {
  const OpDef& def = op_named(op.name, op.loc);
  if (std::holds_alternative<Source>(*def.lower) || std::holds_alternative<FusedOp>(*def.lower)) {
    return result_types(op);
  }
  if (std::holds_alternative<Scan>(*def.lower)) return infer_scan(op);
  return infer_result_types(def, without_layouts(operand_types(op.operands)), op.attrs, op.loc);
}

namespace {

void check_ports(const OpDef& def, std::vector<std::string>& errors) {
  const std::string name = *def.name;
  const std::vector<PortDef>& in = *def.inputs;
  for (size_t i = 0; i + 1 < in.size(); ++i) {
    if (in[i].variadic) errors.push_back(name + ": operand '" + in[i].name + "' repeats, not last");
    if (in[i].optional && !in[i + 1].optional) {
      errors.push_back(name + ": operand '" + in[i + 1].name + "' follows one that may be absent");
    }
  }
  for (const InPlace& pair : *def.in_place) {
    if (pair.out < 0 || pair.in < 0 || pair.out >= static_cast<int>(def.outputs->size()) ||
        pair.in >= static_cast<int>(in.size())) {
      errors.push_back(name + ": in-place pair out of range");
    }
  }
  for (int operand : def.amp.f32_operands) {
    if (operand < 0 || operand >= static_cast<int>(in.size())) {
      errors.push_back(name + ": f32 operand out of range");
    }
  }
}

}  // namespace

std::vector<std::string> op_table_errors(std::span<const OpDef> ops) {
  std::vector<std::string> errors;
  std::set<std::string> names;
  for (const OpDef& def : ops) {
    const std::string& name = *def.name;
    if (!names.insert(name).second) errors.push_back(name + ": defined twice");
    if (def.doc->empty()) errors.push_back(name + ": no doc");
    if (*def.version < 1) errors.push_back(name + ": version below 1");
    std::set<std::string> attrs;
    for (const AttrDef& a : *def.attrs) {
      if (!attrs.insert(a.name).second) errors.push_back(name + ": attribute twice: " + a.name);
      if (a.doc.empty()) errors.push_back(name + ": attribute without doc: " + a.name);
    }
    if (std::holds_alternative<Random>(*def.effects) && !attrs.contains("stream")) {
      errors.push_back(name + ": a random op without attribute 'stream'");
    }
    if (std::holds_alternative<Updates>(*def.effects) && !def.internal) {
      errors.push_back(name + ": updates variables, but is not internal");
    }
    check_ports(def, errors);
  }
  return errors;
}

bool is_alias(const ir::Op& op) { return std::holds_alternative<Alias>(*def_of(op).lower); }

Lowered lower_op(const ir::Op& op) { return lower_op(op, def_of(op)); }

Lowered lower_op(const ir::Op& op, const OpDef& def) {
  const std::vector<Type> in = operand_types(op.operands);
  const std::vector<Type> out = result_types(op);
  const LowerCtx ctx(in, out, op.attrs);
  Lowered lowered;
  lowered.out = out.at(0).shape;
  if (const Map* map = std::get_if<Map>(&*def.lower)) {
    lowered.bodies = map->body(ctx);
    check(lowered.bodies.size() == out.size(), [&] { return op.name + ": one body a result"; });
    return lowered;
  }
  const Reduce* reduce = std::get_if<Reduce>(&*def.lower);
  check(reduce != nullptr, [&] { return op.name + " lowers neither to a Map nor to a Reduce"; });
  ReduceBody body = reduce->body(ctx);
  lowered.reduce = std::move(body.extents);
  lowered.combine = reduce->combine;
  lowered.bodies = {std::move(body.body)};
  return lowered;
}

}  // namespace fluid
