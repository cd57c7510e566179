#include "frontend/scan.h"

#include <algorithm>
#include <set>

#include "frontend/layer_parameters.h"
#include "ops/scan.h"

namespace fluid {
namespace {

/// Number of steps of a scan over `sequences`.
int64_t steps_of(const Values& sequences, const ScanOptions& options, const Loc& loc) {
  require(options.steps >= 0, loc, "scan: cannot take " + std::to_string(options.steps) + " steps");
  int64_t steps = options.steps;
  for (const Value& v : sequences) {
    const Shape& shape = v.shape();
    require(!shape.empty() && !shape[0].batch, loc,
            "scan: the sequence " + v.type().str() + " has no constant first dimension");
    if (steps == 0) steps = shape[0].size;
    require(
        shape[0].is(steps), loc,
        "scan: the sequence " + v.type().str() + " has not " + std::to_string(steps) + " elements");
  }
  require(steps > 0, loc, "scan: needs a sequence that is not empty, or a number of steps");
  return steps;
}

/// Moves the ops from position `first` on that depend on `arguments` from `graph` to `body`.
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
  body.adopt(std::move(moved));
}

/// Makes the body's operands that other graphs hold captures: arguments of the body.
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

void check_step(const ScanStep& step, const ir::Graph& graph, size_t carries, const Loc& loc) {
  require(step.carries.size() == carries, loc,
          "scan: a step returns " + std::to_string(step.carries.size()) + " carries, not " +
              std::to_string(carries));
  for (const Values* values : {&step.carries, &step.collected}) {
    for (const Value& v : *values) {
      require(v && v.op()->graph() == &graph, loc,
              "scan: a step returns an empty value or one of another program");
    }
  }
}

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
  ScanParts parts{.carries = carries.size(),
                  .sequences = sequences.size(),
                  .steps = steps_of(sequences, options, loc),
                  .reverse = options.reverse};
  const size_t first = graph.ops.size();
  Values arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    Type type = operands[i].type();
    if (parts.is_sequence(i)) type.shape.erase(type.shape.begin());
    arguments.push_back(append_argument(graph, i, type));
  }
  const auto middle = arguments.begin() + static_cast<ptrdiff_t>(parts.carries);
  ir::Program& program = graph.program();
  ScanStep step;
  try {
    step = body(Values(arguments.begin(), middle), Values(middle, arguments.end()));
    check_step(step, graph, parts.carries, loc);
  } catch (...) {  // leave a program without the step
    ir::Graph discarded(&program, "discarded");
    move_dependent_ops(graph, first, arguments, discarded);
    throw;
  }
  parts.body = &program.add_graph(program.fresh_graph_name("scan"));
  move_dependent_ops(graph, first, arguments, *parts.body);
  for (const ir::Output& o : graph.outputs) {
    require(o.value.op()->graph() == &graph, loc,
            "scan: output '" + o.name + "' is a value of one step: collect it");
  }
  Captures captures(*parts.body, operands);
  const size_t recorded = parts.body->ops.size();
  for (size_t i = 0; i < recorded; ++i) {
    for (Value& v : parts.body->ops[i]->operands) captures.capture(v);
  }
  for (Values* values : {&step.carries, &step.collected}) {
    for (Value& v : *values) {
      captures.capture(v);
      parts.body->outputs.push_back({std::to_string(parts.body->outputs.size()), v});
    }
  }
  parts.body->move_tail(recorded, 0);
  ir::Op* op = append_scan(graph, operands, parts, loc);
  verify_scan(*op);
  ScanResult result;
  for (size_t i = 0; i < op->results.size(); ++i) {
    (i < parts.carries ? result.carries : result.collected)
        .push_back(op->result(static_cast<int>(i)));
  }
  return result;
}

}  // namespace fluid
