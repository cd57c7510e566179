#include "ops/arguments.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"

namespace fluid {
namespace {

template <class What>
void require(bool holds, const ir::Op& op, const What& what) {
  if (!holds) throw UserError(op.loc, op.name + ": " + message_text(what));
}

void check_symbol(const OpDef& def, const ir::Op& op) {
  const bool named =
      std::holds_alternative<Store>(*def.lower) ||
      (std::holds_alternative<Source>(*def.lower) && source_kind(op) != SourceKind::argument);
  require(named != op.symbol.empty(), op,
          [&] { return named ? "has no name" : "cannot have the name '" + op.symbol + "'"; });
}

void check_source(const OpDef& def, const ir::Op& op) {
  require(op.results.size() == 1, op,
          [&] { return "has " + std::to_string(op.results.size()) + " results instead of one"; });
  check_source(def, op.symbol, op.results[0].type, op.attrs, op.loc);
}

void check_argument(const ir::Op& fused, const ir::Op& argument) {
  const int64_t index = argument.attrs.get<int64_t>("index");
  require(index >= 0 && index < static_cast<int64_t>(fused.operands.size()), fused, [&] {
    return "its body reads operand " + std::to_string(index) + " of " +
           std::to_string(fused.operands.size());
  });
  const Type given = without_layout(fused.operands[static_cast<size_t>(index)].type());
  require(without_layout(argument.results.at(0).type) == given, fused, [&] {
    return "its body takes operand " + std::to_string(index) + " as " +
           argument.results[0].type.str() + ", which is " + given.str();
  });
}

void check_body(const ir::Op& fused) {
  const std::string& name = fused.attrs.get<GraphRef>("body").name;
  const ir::Graph* body = fused.graph()->program().find(name);
  require(body != nullptr, fused, [&] { return "there is no graph '" + name + "'"; });
  for (const auto& op : body->ops) {
    const OpDef& def = op_named(op->name, op->loc);
    require(!std::holds_alternative<FusedOp>(*def.lower), fused, "its body holds a fused op");
    if (!std::holds_alternative<Source>(*def.lower)) continue;
    require(source_kind(*op) == SourceKind::argument, fused,
            [&] { return "its body holds " + op->name; });
    verify_op(*op);
    check_argument(fused, *op);
  }
  std::vector<Type> made;
  for (const ir::Output& o : body->outputs) made.push_back(without_layout(o.value.type()));
  const std::vector<Type> given = without_layouts(result_types(fused));
  require(made == given, fused, [&] {
    return "results are given as " + to_string(given) + " but its body makes " + to_string(made);
  });
}

}  // namespace

void verify_op(const ir::Op& op) {
  const OpDef& def = op_named(op.name, op.loc);
  check_arity(def, op.operands, op.loc);
  check_attrs(def, op.attrs, op.loc);
  check_symbol(def, op);
  if (std::holds_alternative<Source>(*def.lower)) return check_source(def, op);
  if (std::holds_alternative<FusedOp>(*def.lower)) return check_body(op);
  if (std::holds_alternative<Scan>(*def.lower)) return verify_scan(op);
  const std::vector<Type> inferred = without_layouts(infer_types(op));
  const std::vector<Type> given = without_layouts(result_types(op));
  require(inferred == given, op, [&] {
    return "results are given as " + to_string(given) + " but its operands make them " +
           to_string(inferred);
  });
}

}  // namespace fluid
