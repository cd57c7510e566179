#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/scale_chain.h"
#include "passes/weight_ops.h"

namespace fluid {
namespace {

/// A dimension `result_dim` of a contraction's result that corresponds to a dimension `weight_dim`
/// of a weight. Element i along `result_dim` depends only on element i along `weight_dim`.
struct ScaleAxis {
  size_t weight = 0;  ///< operand index of the weight
  size_t weight_dim = 0, result_dim = 0;
};

/// A contraction followed by ops that scale and shift the channels of its result.
struct ScaleChain {
  const ir::Op* contraction = nullptr;
  ScaleAxis axis;
  std::vector<ScaleOrShift> ops;  ///< in execution order
};

int64_t count_reads(const Expr& body, int64_t operand) {
  int64_t reads = 0;
  for_each_node(body, [&](const Expr& e) {
    reads += e.op() == ScalarOp::read && e.node().ivalue == operand ? 1 : 0;
  });
  return reads;
}

size_t count_reads_of_var(const std::vector<Expr>& index, int64_t var) {
  return static_cast<size_t>(std::ranges::count_if(index, [&](const Expr& e) {
    bool reads = false;
    for_each_node(e, [&](const Expr& node) {
      reads |= node.op() == ScalarOp::var && node.node().ivalue == var;
    });
    return reads;
  }));
}

class Folder {
 public:
  explicit Folder(ir::Graph& graph)
      : graph_(graph), weights_(weight_ops(graph)), uses_(graph.uses()) {
    for (const ir::Output& o : graph.outputs) outputs_.insert(o.value);
  }

  bool run() {
    std::map<const ir::Op*, ScaleChain> chains;  // last op of the chain -> chain
    for (const auto& op : graph_.ops) {
      if (const auto chain = chain_from(*op)) chains.emplace(chain->ops.back().op, *chain);
    }
    return rewrite_ops(graph_, [&](const ir::Op& op) {
      const auto chain = chains.find(&op);
      return chain == chains.end() ? Values() : Values{folded(chain->second)};
    });
  }

 private:
  /// The ScaleAxis entries of `op`. Empty unless `op` is a sum of products in which a factor is an
  /// element of a weight.
  std::vector<ScaleAxis> axes_of(const ir::Op& op) const {
    const auto* reduce = std::get_if<Reduce>(&*def_of(op).lower);
    if (reduce == nullptr || reduce->combine != Combine::sum || op.results.size() != 1) return {};
    const Lowered lowered = lower_op(op);
    const Expr& body = lowered.bodies.at(0);
    if (body.op() != ScalarOp::mul) return {};
    std::vector<ScaleAxis> axes;
    for (size_t factor = 0; factor < 2; ++factor) {
      const Expr& read = body.args()[factor];
      if (read.op() != ScalarOp::read || read.node().guarded) continue;
      // Skips a weight that is read twice, as in a sum of squares, even if both factors are the
      // same node.
      if (count_reads(body, read.node().ivalue) != 1 ||
          body.args()[0].get() == body.args()[1].get())
        continue;
      const auto weight = static_cast<size_t>(read.node().ivalue);
      const Value from = op.operands.at(weight);
      if (!weights_.contains(from.op()) || is_half_precision(from.dtype())) continue;
      if (std::ranges::count(op.operands, from) != 1) continue;
      for (size_t d = 0; d < read.args().size(); ++d) {
        const Expr& index = read.args()[d];
        if (index.op() != ScalarOp::var) continue;
        const auto var = static_cast<size_t>(index.node().ivalue);
        const bool only = count_reads_of_var(read.args(), index.node().ivalue) == 1;
        if (var < lowered.out.size() && only) axes.push_back({weight, d, var});
      }
    }
    return axes;
  }

  std::optional<ScaleChain> chain_from(const ir::Op& contraction) const {
    for (const ScaleAxis& axis : axes_of(contraction)) {
      ScaleChain chain{&contraction, axis, {}};
      bool scales = false;  // whether an op multiplies by a factor per channel
      const ir::Op* before = &contraction;
      while (const ir::Op* op = only_user(*before, uses_, outputs_)) {
        const auto link = scale_or_shift(*op, *before, weights_);
        if (!link || !varies_along(*link, axis.result_dim)) break;
        chain.ops.push_back(*link);
        scales |=
            link->scalar == ScalarOp::mul && !op->operands[link->weight].shape().numel().is(1);
        before = op;
      }
      if (scales) return chain;
    }
    return std::nullopt;
  }

  /// Records the ops that replace a chain: the contraction with the scaled weight, plus the
  /// combined shift.
  Value folded(const ScaleChain& chain) const {
    ScaleAndShift function;
    for (const ScaleOrShift& link : chain.ops) function.append(link);
    const Value weight = chain.contraction->operands[chain.axis.weight];
    Shape along_weight(weight.shape().size(), Dim(1));
    along_weight[chain.axis.weight_dim] = weight.shape()[chain.axis.weight_dim];
    Values operands = chain.contraction->operands;
    operands[chain.axis.weight] = weight * reshape(function.scale, along_weight);
    const Value result = record(graph_, chain.contraction->name, operands, chain.contraction->attrs,
                                chain.contraction->loc)[0];
    return function.shift ? result + function.shift : result;
  }

  ir::Graph& graph_;
  std::map<const ir::Op*, bool> weights_;
  Uses uses_;
  std::set<Value> outputs_;
};

bool run_fold_scale_axis(ir::Program& program, const Options&, const Target&) {
  return Folder(program.main()).run();
}

}  // namespace

Pass fold_scale_axis_pass() {
  return {.name = "fold_scale_axis",
          .doc = "Folds scales and shifts of channels, such as batch norm's, into weights.",
          .needs = {"typed"},
          .provides = {},
          .run = run_fold_scale_axis};
}

}  // namespace fluid
