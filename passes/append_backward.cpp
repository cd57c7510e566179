#include "ops/functions.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/collective_order.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

struct Gradients {
  Value seed;  ///< gradient of the loss with respect to itself: 1
  /// (parameter, gradient) pairs, in the order in which the parameters were recorded.
  std::vector<std::pair<ir::Op*, Value>> parameters;
};

/// Reverse-mode differentiation of a scalar loss with respect to the parameters on which it
/// depends.
class Backward {
 public:
  Backward(ir::Graph& graph, Value loss) : graph_(graph), loss_(loss), count_(graph.ops.size()) {}

  Gradients run() {
    find_active_values();
    Gradients result{.seed = seed(), .parameters = {}};
    gradients_[loss_] = result.seed;
    for (size_t i = count_; i-- > 0;) differentiate(*graph_.ops[i]);
    for (ir::Op* param : params_) {
      if (auto it = gradients_.find(param->result()); it != gradients_.end()) {
        result.parameters.emplace_back(param, it->second);
      }
    }
    return result;
  }

 private:
  static bool is_parameter(const ir::Op& op) {
    return source_kind(op) == SourceKind::parameter && op.attrs.get_or<bool>("trainable", true);
  }

  void find_active_values() {
    const std::set<const ir::Op*> needed = ancestors({loss_});
    for (size_t i = 0; i < count_; ++i) {
      ir::Op& op = *graph_.ops[i];
      if (!needed.contains(&op)) continue;
      if (is_parameter(op)) params_.push_back(&op);
      const bool is_active = is_parameter(op) || std::ranges::any_of(op.operands, [&](Value v) {
                               return active_.contains(v);
                             });
      for (size_t r = 0; is_active && r < op.results.size(); ++r) {
        if (is_float(op.results[r].type.dtype)) active_.insert(op.result(static_cast<int>(r)));
      }
    }
  }

  Value seed() {
    ir::ScopedRecording as(graph_, {ir::Role::backward, loss_.op()->loc, loss_.op()->scope, ""});
    return fill(graph_, {.type = loss_.type(), .value = 1.0}, loss_.op()->loc);
  }

  void differentiate(ir::Op& op) {
    Values dout;
    for (size_t r = 0; r < op.results.size(); ++r) {
      auto it = gradients_.find(op.result(static_cast<int>(r)));
      dout.push_back(it == gradients_.end() ? Value() : it->second);
    }
    const bool reached = std::ranges::any_of(dout, [](Value v) { return static_cast<bool>(v); });
    const bool is_active =
        std::ranges::any_of(op.operands, [&](Value v) { return active_.contains(v); });
    if (!reached || !is_active) return;
    const auto* grad = std::get_if<GradFn>(&*def_of(op).grad);
    if (grad == nullptr) {
      throw UserError(op.loc, op.name +
                                  " has no gradient, but a parameter reaches the loss "
                                  "through it");
    }
    ir::ScopedRecording as(graph_, {ir::Role::backward, op.loc, op.scope, ""});
    const size_t first = graph_.ops.size();
    const Values din = (*grad)(GradCtx(op, dout));
    copy_loc_and_no_amp(op, graph_, first);
    check(din.size() == op.operands.size(),
          [&] { return op.name + ": the gradient has one value an operand"; });
    for (size_t i = 0; i < din.size(); ++i) {
      if (din[i] && active_.contains(op.operands[i])) accumulate(op, i, din[i]);
    }
  }

  void accumulate(const ir::Op& op, size_t operand, Value gradient) {
    const Value of = op.operands[operand];
    check(gradient.type() == of.type(), [&] {
      return op.name + ": the gradient of operand " + std::to_string(operand) + " is " +
             gradient.type().str() + ", not " + of.type().str();
    });
    auto [it, first] = gradients_.try_emplace(of, gradient);
    if (!first) it->second = add(it->second, gradient, op.loc);
  }

  ir::Graph& graph_;
  Value loss_;
  size_t count_;  ///< number of forward ops
  std::vector<ir::Op*> params_;
  std::set<Value> active_;  ///< values on a path from a trainable parameter to the loss
  std::map<Value, Value> gradients_;
};

bool run_append_backward(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* train = find_directive(graph);
  if (train == nullptr) return false;
  const Value loss = train->operands.at(0);
  const Gradients gradients = Backward(graph, loss).run();
  if (gradients.parameters.empty()) {
    throw UserError(train->loc,
                    "the loss does not depend on any trainable parameter: nothing to train");
  }
  std::vector<std::string> names;
  Values values;
  train->operands.push_back(gradients.seed);
  for (const auto& [param, gradient] : gradients.parameters) {
    names.push_back(param->symbol);
    values.push_back(gradient);
    train->operands.push_back(gradient);
    if (gradient.op()->param.empty()) gradient.op()->param = param->symbol;
  }
  train->attrs.set("parameters", names);
  move_op_last(graph, train);
  if (const auto waits = last_collectives(graph, values))
    Recipe(*train).set_last_collectives(*waits);
  return true;
}

}  // namespace

Pass append_backward_pass() {
  return {.name = "append_backward",
          .doc = "Appends the gradients of the loss with respect to the trainable parameters.",
          .needs = {"typed"},
          .gives = {"gradients"},
          .run = run_append_backward};
}

}  // namespace fluid
