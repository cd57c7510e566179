#include "ops/record.h"

#include <set>
#include <vector>

#include "ir/verify.h"
#include "ops/arguments.h"
#include "ops/length.h"
#include "ops/no_amp.h"

namespace fluid {
namespace {

void check_operands(const ir::Graph& graph, const OpDef& def, std::vector<Value>& operands,
                    const Loc& loc) {
  while (!operands.empty() && !operands.back()) operands.pop_back();
  for (const Value& v : operands) {
    if (!v) throw UserError(loc, *def.name + ": an operand is null");
    if (v.op()->graph() != &graph) {
      throw UserError(loc, *def.name + ": an operand belongs to another program");
    }
  }
  check_arity(def, operands, loc);
}

/// Gives a random op without a stream the stream of its id.
void set_random_stream(const OpDef& def, ir::Op& op) {
  if (!std::holds_alternative<Random>(*def.effects)) return;
  if (op.attrs.get<int64_t>("stream") < 0) op.attrs.set("stream", op.id);
}

}  // namespace

Values record(ir::Graph& graph, std::string_view name, std::vector<Value> operands, Attrs attrs,
              const Loc& callers) {
  const Loc& loc = graph.recording.loc ? *graph.recording.loc : callers;
  const OpDef& def = op_named(name, loc);
  check_operands(graph, def, operands, loc);
  attrs = complete_attrs(def, attrs, loc);
  const bool computes =
      !std::holds_alternative<Store>(*def.lower) && !std::holds_alternative<Directive>(*def.lower);
  if (computes && NoAmp::active()) attrs.set(kNoAmp, true);
  std::vector<Type> types =
      infer_result_types(def, without_layouts(operand_types(operands)), attrs, loc);
  for (const Type& type : types) {
    if (const std::string fault = ir::fault_of(type); !fault.empty())
      throw UserError(loc, *def.name + ": " + fault);
  }
  ir::Op* op =
      graph.append(std::string(name), std::move(operands), std::move(attrs), std::move(types), loc);
  set_random_stream(def, *op);
  Values results;
  for (size_t i = 0; i < op->results.size(); ++i) {
    results.push_back(op->result(static_cast<int>(i)));
  }
  return results;
}

ir::Graph& graph_of(const Values& operands, std::string_view op, const Loc& loc) {
  for (const Value& v : operands) {
    if (!v) throw UserError(loc, std::string(op) + ": an operand is null");
  }
  if (operands.empty()) throw UserError(loc, std::string(op) + ": needs at least one operand");
  return *operands.front().op()->graph();
}

void fill_default_attrs(ir::Op& op) {
  const OpDef& def = op_named(op.name, op.loc);
  op.attrs = complete_attrs(def, op.attrs, op.loc);
  set_random_stream(def, op);
}

void fill_default_attrs(ir::Graph& graph) {
  std::set<int64_t> streams;
  std::vector<ir::Op*> without_stream;
  for (const auto& op : graph.ops) {
    const OpDef& def = op_named(op->name, op->loc);
    op->attrs = complete_attrs(def, op->attrs, op->loc);
    if (!std::holds_alternative<Random>(*def.effects)) continue;
    const auto stream = op->attrs.get<int64_t>("stream");
    if (stream >= 0) {
      streams.insert(stream);
    } else {
      without_stream.push_back(op.get());
    }
  }
  const auto set_stream = [&](ir::Op& op, int64_t stream) {
    op.attrs.set("stream", stream);
    streams.insert(stream);
  };
  std::vector<ir::Op*> of_taken_id;
  for (ir::Op* op : without_stream) {
    if (streams.contains(op->id)) {
      of_taken_id.push_back(op);
    } else {
      set_stream(*op, op->id);
    }
  }
  for (ir::Op* op : of_taken_id) set_stream(*op, *streams.rbegin() + 1);
}

namespace {

const std::vector<std::string>& source_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const OpDef& def : op_table()) {
      if (std::holds_alternative<Source>(*def.lower)) all.push_back(*def.name);
    }
    return all;
  }();
  return names;
}

}  // namespace

Value record_source(ir::Graph& graph, std::string_view name, std::string symbol, Type type,
                    Attrs attrs, const Loc& loc) {
  const OpDef& def = op_named(name, loc);
  check(std::holds_alternative<Source>(*def.lower), std::string(name) + " is not a source");
  for (const std::string& source : source_names()) {
    const ir::Op* op = graph.find_indexed(source, symbol);
    if (op == nullptr) continue;
    throw UserError(loc, std::string(name) + ": the name '" + symbol + "' is taken by the " +
                             op->name + (op->loc.is_known() ? " of " + op->loc.str() : ""));
  }
  attrs = complete_attrs(def, attrs, loc);
  check_source(def, symbol, type, attrs, loc);
  ir::Op* op = graph.append(std::string(name), {}, std::move(attrs), {std::move(type)}, loc);
  op->symbol = std::move(symbol);
  return op->result();
}

void record_store(ir::Graph& graph, std::string symbol, Value value, const Loc& loc) {
  record(graph, "store", {value}, {}, loc);
  graph.ops.back()->symbol = std::move(symbol);
  graph.ops.back()->role = ir::Role::optimize;
}

}  // namespace fluid
