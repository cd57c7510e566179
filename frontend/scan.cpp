#include "frontend/scan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "frontend/layer_parameters.h"
#include "ops/scan.h"

namespace fluid {
namespace {

/// Number of steps of a scan over `sequences`: a constant, or a dynamic extent (kLength).
Dim steps_of(const Values& sequences, const ScanOptions& options, const Loc& loc) {
  require(options.steps >= 0, loc, "scan: cannot take " + std::to_string(options.steps) + " steps");
  Dim steps = options.steps;
  for (const Value& v : sequences) {
    const Shape& shape = v.shape();
    require(!shape.empty() && !shape[0].batch, loc,
            "scan: the sequence " + v.type().str() + " has no constant first dimension");
    if (steps.is(0)) steps = shape[0];
    require(shape[0] == steps, loc,
            "scan: the sequence " + v.type().str() + " has not " + steps.str() + " elements");
  }
  require(steps.size > 0, loc, "scan: needs a sequence that is not empty, or a number of steps");
  return steps;
}

/// Moves ops from `graph` to `body`: all ops from position `first` on that depend on `arguments`.
void move_dependent_ops(ir::Graph& graph, size_t first, const Values& arguments, ir::Graph& body) {
  std::set<const ir::Op*> dependent;
  for (const Value& v : arguments) dependent.insert(v.op());
  std::vector<std::unique_ptr<ir::Op>> moved, kept;
  for (size_t i = first; i < graph.ops.size(); ++i) {
    std::unique_ptr<ir::Op>& op = graph.ops[i];
    const bool depends =
        dependent.contains(op.get()) ||
        std::ranges::any_of(op->operands, [&](Value v) { return dependent.contains(v.op()); });
    if (depends) dependent.insert(op.get());
    (depends ? moved : kept).push_back(std::move(op));
  }
  graph.ops.resize(first);
  std::ranges::move(kept, std::back_inserter(graph.ops));
  body.splice_ops(std::move(moved));
}

/// Replaces operands from other graphs by captures, which are additional arguments of the body.
class Captures {
 public:
  Captures(ir::Graph& body, Values& operands) : body_(body), operands_(operands) {}

  void capture(Value& v) {
    if (v.op()->graph() == &body_) return;
    const auto [known, added] = arguments_.try_emplace(v);
    if (added) {
      known->second = append_argument(body_, operands_.size(), v.type());
      operands_.push_back(v);
    }
    v = known->second;
  }

 private:
  ir::Graph& body_;
  Values& operands_;
  std::map<Value, Value> arguments_;
};

/// Records one scan. If recording fails, restores the program.
class Recorder {
 public:
  Recorder(ir::Graph& graph, Values operands, const ScanParts& parts, const Loc& loc)
      : graph_(graph),
        program_(graph.program()),
        operands_(std::move(operands)),
        parts_(parts),
        loc_(loc),
        first_(graph.ops.size()),
        graphs_(program_.graphs.size()) {}

  ScanResult record(const ScanBody& body) {
    try {
      ScanStep step = record_step(body);
      move_into_body();
      capture(step);
      return append();
    } catch (...) {
      discard();
      throw;
    }
  }

 private:
  /// Records the ops of the step in the outer graph; move_into_body() moves them to the body.
  /// Argument ops stand for the carries and the elements.
  ScanStep record_step(const ScanBody& body) {
    for (size_t i = 0; i < operands_.size(); ++i) {
      Type type = operands_[i].type();
      if (parts_.is_sequence(i)) type.shape.erase(type.shape.begin());
      arguments_.push_back(append_argument(graph_, i, type));
    }
    const auto middle = arguments_.begin() + static_cast<ptrdiff_t>(parts_.carries);
    ScanStep step = body(Values(arguments_.begin(), middle), Values(middle, arguments_.end()));
    require(step.carries.size() == parts_.carries, loc_,
            "scan: a step returns " + std::to_string(step.carries.size()) + " carries, not " +
                std::to_string(parts_.carries));
    for (const Values* values : {&step.carries, &step.collected}) {
      for (const Value& v : *values) {
        require(v && v.op()->graph() == &graph_, loc_,
                "scan: a step returns an empty value or a value of another program");
      }
    }
    return step;
  }

  void move_into_body() {
    parts_.body = &program_.add_graph(program_.fresh_graph_name("scan"));
    move_dependent_ops(graph_, first_, arguments_, *parts_.body);
    for (const ir::Output& o : graph_.outputs) {
      require(o.value.op()->graph() == &graph_, loc_,
              "scan: output '" + o.name + "' is a value of one step: collect it");
    }
  }

  /// Captures the values of the outer graph that the step reads. Sets the outputs of the body.
  void capture(ScanStep& step) {
    Captures captures(*parts_.body, operands_);
    const size_t recorded = parts_.body->ops.size();
    for (size_t i = 0; i < recorded; ++i) {
      for (Value& v : parts_.body->ops[i]->operands) captures.capture(v);
    }
    for (Values* values : {&step.carries, &step.collected}) {
      for (Value& v : *values) {
        captures.capture(v);
        parts_.body->outputs.push_back({std::to_string(parts_.body->outputs.size()), v});
      }
    }
    parts_.body->move_tail(recorded, 0);
  }

  ScanResult append() const {
    ir::Op* op = append_scan(graph_, operands_, parts_, loc_);
    verify_scan(*op);
    ScanResult result;
    for (size_t i = 0; i < op->results.size(); ++i) {
      (i < parts_.carries ? result.carries : result.collected)
          .push_back(op->result(static_cast<int>(i)));
    }
    return result;
  }

  /// Erases everything that record() has recorded: arguments, the ops that depend on them, the
  /// scan, and its body.
  void discard() {
    ir::Graph discarded(&program_, "discarded");
    move_dependent_ops(graph_, first_, arguments_, discarded);
    std::erase_if(graph_.outputs,
                  [&](const ir::Output& o) { return o.value.op()->graph() != &graph_; });
    std::set<const ir::Graph*> before;
    for (size_t i = 0; i < graphs_; ++i) before.insert(program_.graphs[i].get());
    graph_.erase_if(
        [&](const ir::Op& op) { return is_scan(op) && !before.contains(scan_parts(op).body); });
    program_.erase_graphs([&](const ir::Graph& g) { return !before.contains(&g); });
  }

  ir::Graph& graph_;
  ir::Program& program_;
  Values operands_;
  ScanParts parts_;
  const Loc& loc_;
  size_t first_;   ///< number of ops in graph_ before record()
  size_t graphs_;  ///< number of graphs in program_ before record()
  Values arguments_;
};

}  // namespace

ScanResult scan(const Values& carries, const Values& sequences, const ScanBody& body,
                const ScanOptions& options, const Loc& loc) {
  Values operands = carries;
  operands.insert(operands.end(), sequences.begin(), sequences.end());
  require(!operands.empty(), loc, "scan: needs a carry or a sequence");
  ir::Graph& graph = input_graph(operands.front(), "scan", loc);
  for (const Value& v : operands) {
    require(v && v.op()->graph() == &graph, loc,
            "scan: a carry or sequence is empty or belongs to another program");
  }
  const Dim steps = steps_of(sequences, options, loc);
  const ScanParts parts{.carries = carries.size(),
                        .sequences = sequences.size(),
                        .steps = steps.has_length() ? 0 : steps.size,
                        .reverse = options.reverse};
  return Recorder(graph, std::move(operands), parts, loc).record(body);
}

}  // namespace fluid
