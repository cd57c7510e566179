#include <algorithm>
#include <map>
#include <set>

#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"
#include "passes/fusion.h"
#include "passes/leading_dim.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/scan_arguments.h"

namespace fluid {
namespace {

/// Inputs of the body of a scan on which a value may depend. Each kind includes the preceding
/// kinds.
enum class Dependence : uint8_t {
  none,
  captures,  ///< constants and captures: the value is the same in all steps
  elements,  ///< as `captures`, and elements of sequences
  carries,
};

/// Hoists ops from the body of one scan to the outer graph. Moves ops that depend only on captures,
/// and contractions that do not depend on carries. A moved contraction runs once, on the elements
/// of all steps.
class Hoister {
 public:
  Hoister(ir::Op& scan, int64_t batch)
      : scan_(scan),
        parts_(scan_parts(scan)),
        graph_(*scan.graph()),
        arguments_(scan),
        batch_(batch) {
    const Values arguments = arguments_of(*parts_.body, scan.operands.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Value v = arguments[i];
      if (!v) continue;
      argument_ops_.insert(v.op());
      dependence_[v.op()] = i < parts_.carries      ? Dependence::carries
                            : parts_.is_sequence(i) ? Dependence::elements
                                                    : Dependence::captures;
      if (i >= parts_.carries) outside_[v] = scan.operands[i];
    }
  }

  void run() {
    std::vector<ir::Op*> kept;
    const std::set<const ir::Op*> movable = movable_ops();
    for (const auto& op : parts_.body->ops) {
      if (argument_ops_.contains(op.get())) continue;
      const bool moved = movable.contains(op.get()) && record_outside(*op);
      if (!moved) kept.push_back(op.get());
    }
    // Adding an argument appends an op to the body, so this loop runs over a copy of the op list.
    for (ir::Op* op : kept) {
      for (Value& v : op->operands) v = inside(v);
    }
    for (ir::Output& o : parts_.body->outputs) o.value = inside(o.value);
    set_operands(scan_, arguments_);
  }

 private:
  std::set<const ir::Op*> movable_ops() {
    std::set<const ir::Op*> movable, rowwise_ops;
    Values contractions;
    for (const auto& op : parts_.body->ops) {
      if (argument_ops_.contains(op.get())) continue;
      Dependence& d = dependence_[op.get()];
      for (const Value& v : op->operands) d = std::max(d, dependence_.at(v.op()));
      if (d == Dependence::captures && !is_scan(*op)) movable.insert(op.get());
      if (d != Dependence::elements || !computes_rows(*op, rowwise_ops)) continue;
      rowwise_ops.insert(op.get());
      if (is_contraction(*op, batch_)) contractions.push_back(op->result());
    }
    std::ranges::set_intersection(ancestors(contractions), rowwise_ops,
                                  std::inserter(movable, movable.end()));
    return movable;
  }

  /// Whether `op` computes each row of its result independently. Row i may depend on captures,
  /// constants, row i of sequence elements, and row i of results of `rowwise_ops`.
  bool computes_rows(const ir::Op& op, const std::set<const ir::Op*>& rowwise_ops) const {
    std::vector<bool> has_rows;
    for (const Value& v : op.operands) {
      has_rows.push_back(dependence_.at(v.op()) == Dependence::elements);
      const bool known = argument_ops_.contains(v.op()) || rowwise_ops.contains(v.op());
      if (has_rows.back() && !known) return false;
    }
    return is_rowwise(op, has_rows);
  }

  /// Records `op` in the outer graph. Returns false if this is not possible.
  bool record_outside(const ir::Op& op) {
    const bool of_elements = dependence_.at(&op) == Dependence::elements;
    Values operands;
    for (const Value& v : op.operands) {
      const Value given = outside(v);
      if (!given) return false;
      const bool rows = dependence_.at(v.op()) == Dependence::elements;
      operands.push_back(rows ? concatenated_rows(given, op.loc) : given);
    }
    if (!of_elements) {
      const Values results = record(graph_, op.name, operands, op.attrs, op.loc);
      for (const Value& v : results) outside_[Value(const_cast<ir::Op*>(&op), v.index())] = v;
      return true;
    }
    const Value rows = record_like(graph_, op, operands);
    if (!rows) return false;
    const Type sequence = sequence_type(op.results[0].type, parts_.steps);
    outside_[Value(const_cast<ir::Op*>(&op), 0)] = reshape(rows, sequence.shape, op.loc);
    return true;
  }

  /// The value of the outer graph that corresponds to `v`, or null. Copies constants to the outer
  /// graph.
  Value outside(Value v) {
    const auto known = outside_.find(v);
    if (known != outside_.end()) return known->second;
    const ir::Op& op = *v.op();
    const bool constant = op.operands.empty() && !argument_ops_.contains(&op);
    return constant ? record(graph_, op.name, {}, op.attrs, op.loc)[static_cast<size_t>(v.index())]
                    : Value();
  }

  /// The value that ops in the body read in place of `v`: an argument if `v` was moved out, else
  /// `v`.
  Value inside(Value v) {
    const auto moved = outside_.find(v);
    if (moved == outside_.end() || argument_ops_.contains(v.op())) return v;
    const auto [known, added] = inside_.try_emplace(v);
    if (added) {
      const bool element = dependence_.at(v.op()) == Dependence::elements;
      known->second =
          element ? arguments_.add_sequence(moved->second) : arguments_.add_capture(moved->second);
    }
    return known->second;
  }

  ir::Op& scan_;
  ScanParts parts_;
  ir::Graph& graph_;
  ScanArguments arguments_;
  int64_t batch_;
  std::set<const ir::Op*> argument_ops_;
  std::map<const ir::Op*, Dependence> dependence_;
  /// Value of the body -> value of the outer graph. A value that differs between steps maps to the
  /// sequence of its values in all steps.
  std::map<Value, Value> outside_;
  std::map<Value, Value> inside_;  ///< moved value -> argument
};

/// Removes the stacked results of `scan` that have no user, and the corresponding outputs of the
/// body. Returns the new index of each output, or -1 for a removed output.
std::vector<int> remove_unread_outputs(ir::Op& scan, const std::set<Value>& read) {
  const ScanParts parts = scan_parts(scan);
  std::vector<ir::Output> outputs;
  std::vector<int> positions(scan.results.size(), -1);
  for (size_t i = 0; i < scan.results.size(); ++i) {
    if (i >= parts.carries && !read.contains(scan.result(static_cast<int>(i)))) continue;
    positions[i] = static_cast<int>(outputs.size());
    outputs.push_back({std::to_string(outputs.size()), parts.body->outputs[i].value});
  }
  parts.body->outputs = std::move(outputs);
  return positions;
}

/// Hoists ops out of `scan`. If this removes results of the scan, returns a replacement for each
/// result. Otherwise returns no values.
Values hoist_from_scan(ir::Op& scan, const std::set<Value>& read, int64_t batch) {
  const std::vector<int> positions = remove_unread_outputs(scan, read);
  Hoister(scan, batch).run();
  const ScanParts parts = scan_parts(scan);
  if (parts.body->outputs.size() == scan.results.size()) return {};
  ir::Op* pruned = append_scan(*scan.graph(), scan.operands, parts, scan.loc);
  Values results;
  for (const int i : positions) results.push_back(i < 0 ? Value() : pruned->result(i));
  return results;
}

std::set<Value> values_read(const ir::Graph& graph) {
  std::set<Value> read;
  for (const auto& op : graph.ops) read.insert(op->operands.begin(), op->operands.end());
  for (const ir::Output& o : graph.outputs) read.insert(o.value);
  return read;
}

bool hoist_from_scans(ir::Graph& graph, int64_t batch) {
  if (std::ranges::none_of(graph.ops, [](const auto& op) { return is_scan(*op); })) return false;
  const std::set<Value> read = values_read(graph);
  rewrite_ops(graph, [&](ir::Op& op) {
    if (!is_scan(op)) return Values();
    hoist_from_scans(*scan_parts(op).body, batch);
    return hoist_from_scan(op, read, batch);
  });
  return true;
}

bool run_hoist(ir::Program& program, const Options& options, const Target&) {
  return hoist_from_scans(program.main(), options.batch);
}

}  // namespace

Pass hoist_pass() {
  return {.name = "hoist",
          .doc =
              "Moves ops out of scans that give the same in each step, and contractions that do "
              "not depend on carries.",
          .needs = {"typed"},
          .provides = {},
          .run = run_hoist};
}

}  // namespace fluid
