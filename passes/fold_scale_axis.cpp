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
#include "passes/weight_ops.h"

namespace fluid {
namespace {

/// A dimension `result_dim` of a contraction's result that corresponds to a dimension `weight_dim`
/// of a weight. Element i along `result_dim` depends only on element i along `weight_dim`.
struct ScaleAxis {
  size_t weight = 0;  ///< operand index of the weight
  size_t weight_dim = 0, result_dim = 0;
};

/// An elementwise op that scales or shifts the result of the op before it: x * w, x + w or x - w.
struct ScaleOrShift {
  const ir::Op* op = nullptr;
  ScalarOp scalar = ScalarOp::add;
  size_t weight = 0;  ///< operand index of w
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

/// Aligns `shape` with a shape of rank `rank`, as in broadcasting. Returns a map from dimension to
/// extent, without dimensions of extent 1.
std::map<size_t, Dim> broadcast_dims(const Shape& shape, size_t rank) {
  std::map<size_t, Dim> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!shape[d].is(1)) dims[d + rank - shape.size()] = shape[d];
  }
  return dims;
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

  /// Returns `op` as a ScaleOrShift, or nullopt if it does not scale or shift the result of
  /// `before` by a weight.
  std::optional<ScaleOrShift> scale_or_shift(const ir::Op& op, const ir::Op& before) const {
    if (!std::holds_alternative<Map>(*def_of(op).lower) || op.operands.size() != 2) return {};
    const Lowered lowered = lower_op(op);
    const Expr& body = lowered.bodies.at(0);
    const size_t weight = op.operands[0].op() == &before ? 1 : 0;
    const bool known = body.op() == ScalarOp::add || body.op() == ScalarOp::mul ||
                       (body.op() == ScalarOp::sub && weight == 1);
    if (!known || !weights_.contains(op.operands[weight].op())) return {};
    for (size_t i = 0; i < 2; ++i) {
      const Expr& read = body.args()[i];
      if (read.op() != ScalarOp::read || read.node().ivalue != static_cast<int64_t>(i)) return {};
    }
    return ScaleOrShift{&op, body.op(), weight};
  }

  std::optional<ScaleChain> chain_from(const ir::Op& contraction) const {
    for (const ScaleAxis& axis : axes_of(contraction)) {
      ScaleChain chain{&contraction, axis, {}};
      bool scales = false;  // whether an op multiplies by a factor per channel
      const ir::Op* before = &contraction;
      while (const ir::Op* op = only_user(*before, uses_, outputs_)) {
        const auto link = scale_or_shift(*op, *before);
        if (!link) break;
        const auto dims =
            broadcast_dims(op->operands[link->weight].shape(), op->results[0].type.shape.size());
        if (dims.size() > 1 || (dims.size() == 1 && !dims.contains(axis.result_dim))) break;
        chain.ops.push_back(*link);
        scales |= link->scalar == ScalarOp::mul && !dims.empty();
        before = op;
      }
      if (scales) return chain;
    }
    return std::nullopt;
  }

  /// Records the ops that replace a chain: the contraction with the scaled weight, plus the
  /// combined shift.
  Value folded(const ScaleChain& chain) const {
    Value scale, shift;
    for (const ScaleOrShift& link : chain.ops) {
      const Value w = link.op->operands[link.weight];
      switch (link.scalar) {
        case ScalarOp::add:
          shift = shift ? shift + w : w;
          break;
        case ScalarOp::sub:
          shift = shift ? shift - w : -w;
          break;
        default:
          scale = scale ? scale * w : w;
          if (shift) shift = shift * w;
      }
    }
    const Value weight = chain.contraction->operands[chain.axis.weight];
    Shape along_weight(weight.shape().size(), Dim(1));
    along_weight[chain.axis.weight_dim] = weight.shape()[chain.axis.weight_dim];
    Values operands = chain.contraction->operands;
    operands[chain.axis.weight] = weight * reshape(scale, along_weight);
    const Value result = record(graph_, chain.contraction->name, operands, chain.contraction->attrs,
                                chain.contraction->loc)[0];
    return shift ? result + shift : result;
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
