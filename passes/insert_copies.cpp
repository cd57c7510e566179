#include "ops/functions.h"
#include "ops/internal_functions.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Whether the memory of `v` belongs to a feed, a variable or the bucket of a collective.
bool has_external_storage(Value v) {
  const ir::Op& op = *root_of(v).op();
  return source_kind(op) != SourceKind::none || is_collective(op);
}

/// Root values (see root_of()) that have several users, or that are graph outputs. Alias ops do
/// not count as users.
std::set<Value> shared_roots(const ir::Graph& graph) {
  std::set<Value> read, shared;
  const auto add = [&](Value v) {
    const Value root = root_of(v);
    if (!read.insert(root).second) shared.insert(root);
  };
  for (const auto& op : graph.ops) {
    if (is_alias(*op)) continue;
    for (Value v : op->operands) add(v);
  }
  for (const ir::Output& o : graph.outputs) shared.insert(root_of(o.value));
  return shared;
}

/// Inserts copies of the operands for which `needs_copy` holds. Returns whether it inserted any.
bool copy_operands(ir::Graph& graph,
                   const std::function<bool(const ir::Op& op, size_t operand)>& needs_copy) {
  bool changed = false;
  rewrite_ops(graph, [&](ir::Op& op) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (!needs_copy(op, i)) continue;
      op.operands[i] = internal::copy(op.operands[i]);
      changed = true;
    }
    return Values();
  });
  return changed;
}

/// Inserts copies of operands of collectives, because a collective overwrites its operands in
/// place. Copies operands that have another user, and operands with external storage (see
/// has_external_storage()).
bool copy_shared_operands(ir::Graph& graph) {
  const std::set<Value> shared = shared_roots(graph);
  return copy_operands(graph, [&](const ir::Op& op, size_t i) {
    const Value v = op.operands[i];
    return is_collective(op) && (has_external_storage(v) || shared.contains(root_of(v)));
  });
}

/// The operand that `v` must overwrite in place; null if there is none.
Value overwritten_operand(Value v) {
  for (const InPlace& pair : *def_of(*v.op()).in_place) {
    if (pair.required && pair.out == v.index()) {
      return v.op()->operands.at(static_cast<size_t>(pair.in));
    }
  }
  return {};
}

/// Whether the op that computes the stored value must overwrite the memory of the variable that
/// `store` writes.
bool stores_in_place(const ir::Op& store) {
  const Value old = overwritten_operand(store.operands[0]);
  return old && is_variable(*old.op()) && old.op()->symbol == store.symbol;
}

/// Copies the operands that ops must overwrite in place, except variables that the ops update.
bool copy_overwritten_operands(ir::Graph& graph) {
  std::set<Value> new_values;  // new values of variables, computed in place
  for (const auto& op : graph.ops) {
    if (is_store(*op) && stores_in_place(*op)) new_values.insert(op->operands[0]);
  }
  return copy_operands(graph, [&](const ir::Op& op, size_t operand) {
    return std::ranges::any_of(*def_of(op).in_place, [&](const InPlace& pair) {
      return pair.required && pair.in == static_cast<int>(operand) &&
             !new_values.contains(Value(const_cast<ir::Op*>(&op), pair.out));
    });
  });
}

/// Copies values that occur several times among the outputs of a scan's body, because each output
/// is written to its own memory.
bool separate_outputs(ir::Graph& body) {
  std::set<Value> roots;
  bool changed = false;
  for (ir::Output& o : body.outputs) {
    if (roots.insert(root_of(o.value)).second) continue;
    ir::ScopedRecording as(body, {o.value.op()->role, o.value.op()->loc, o.value.op()->scope, ""});
    o.value = internal::copy(o.value);
    changed = true;
  }
  return changed;
}

bool run_insert_copies(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  bool changed = false;
  auto own = [&](Value& v, const ir::Graph::Recording& as_part) {
    if (!has_external_storage(v) && !overwritten_operand(v)) return;
    ir::ScopedRecording as(graph, as_part);
    v = internal::copy(v);
    changed = true;
  };
  for (ir::Output& o : graph.outputs) {
    own(o.value, {ir::Role::forward, o.value.op()->loc, o.value.op()->scope, ""});
  }
  if (is_scan_body(graph)) changed |= separate_outputs(graph);
  const size_t count = graph.ops.size();
  for (size_t i = 0; i < count; ++i) {
    ir::Op& op = *graph.ops[i];
    if (!is_store(op) || stores_in_place(op)) continue;
    own(op.operands[0], {ir::Role::optimize, op.loc, op.scope, ""});
  }
  if (changed) move_stores_last(graph);
  changed |= copy_shared_operands(graph);
  changed |= copy_overwritten_operands(graph);
  return changed;
}

}  // namespace

Pass insert_copies_pass() {
  return {.name = "insert_copies",
          .doc =
              "Copies what an output, a store, a collective or an op that runs in place must not "
              "alias or overwrite.",
          .needs = {"primitive"},
          .provides = {},
          .run = run_insert_copies};
}

}  // namespace fluid
