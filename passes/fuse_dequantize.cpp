#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ops/internal_functions.h"
#include "ops/matched_forms.h"
#include "ops/operators.h"
#include "ops/quantization/integer_product.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/scale_chain.h"
#include "passes/weight_ops.h"

namespace fluid {
namespace {

/// A convolution or product of dequantized operands, and the ops that become its epilogue.
struct QuantizedChain {
  const ir::Op* head = nullptr;
  std::vector<ScaleOrShift> links;  ///< scales and shifts of the channels, in order
  bool relu = false;
  const ir::Op* quantize = nullptr;  ///< null: the result stays f32
};

/// Computes on the integers what convolutions and products compute on dequantized ones.
class Fuser {
 public:
  Fuser(ir::Graph& graph, const Options& options, const Target& target)
      : graph_(graph),
        options_(options),
        target_(target),
        weights_(weight_ops(graph)),
        uses_(graph.uses()) {
    for (const ir::Output& o : graph.outputs) outputs_.insert(o.value);
  }

  bool run() {
    std::map<const ir::Op*, QuantizedChain> chains;  // last op of the chain -> chain
    for (const auto& op : graph_.ops) {
      if (!output_axis_of_weight(*op) || !dequantized(op->operands[1]) || !pays(*op)) continue;
      const auto [chain, last] = chain_from(*op);
      chains[last] = chain;
    }
    const bool changed = rewrite_ops(graph_, [&](ir::Op& op) {
      const auto chain = chains.find(&op);
      return chain == chains.end() ? Values() : Values{fused(chain->second)};
    });
    if (changed) erase_dead_ops(graph_);
    return changed;
  }

 private:
  /// Whether `op` has a form on integers that is predicted to be faster than that on floats.
  bool pays(const ir::Op& op) const {
    std::vector<const ir::Op*> chain;
    for (const Value& v : op.operands) {
      if (dequantized(v)) chain.push_back(v.op());
    }
    chain.push_back(&op);
    const auto alone = concrete_copy(chain, options_.batch);
    const ir::Op& copy = *alone->main().ops.back();
    const auto product = record_integer_product(copy);
    return product && seconds(*product->sums.op()) < seconds(copy);
  }

  /// Predicted run time of the op by the fastest kernel, in any layout.
  double seconds(const ir::Op& op) const {
    double best = target_.generated_seconds(op);
    if (!options_.use_libraries) return best;
    for (const KernelCandidate& candidate : target_.candidates(op, {}))
      best = std::min(best, candidate.seconds);
    return best;
  }

  /// The longest chain that begins with `head`, and its last op.
  std::pair<QuantizedChain, const ir::Op*> chain_from(const ir::Op& head) const {
    QuantizedChain chain{.head = &head};
    const size_t rank = head.results[0].type.shape.size();
    const bool is_conv = head.operands[1].shape().rank() == 4;
    const size_t channel_dim = is_conv ? 1 : rank - 1;
    const ir::Op* last = &head;
    while (const ir::Op* op = only_user(*last, uses_, outputs_)) {
      const auto link = scale_or_shift(*op, *last, weights_);
      if (!link || !varies_along(*link, channel_dim)) break;
      chain.links.push_back(*link);
      last = op;
    }
    if (const ir::Op* op = only_user(*last, uses_, outputs_); op != nullptr && is_relu(*op)) {
      chain.relu = true;
      last = op;
    }
    const ir::Op* user = only_reader(*last, uses_, outputs_);
    const auto quantize = user != nullptr ? quantized(*user) : std::nullopt;
    // A relu before a zero point other than 0 would have to follow the shift by the zero point.
    if (quantize && user->operands[0].op() == last && !(chain.relu && quantize->zero_point)) {
      chain.quantize = user;
      last = user;
    }
    return {chain, last};
  }

  static Value fused(const QuantizedChain& chain) {
    const auto product = record_integer_product(*chain.head);
    ScaleAndShift function{product->scale, product->shift};
    for (const ScaleOrShift& link : chain.links) function.append(link);
    const auto quantize = chain.quantize != nullptr ? quantized(*chain.quantize) : std::nullopt;
    if (quantize) {
      const Value divisor = reshape(quantize->scale, Shape{});
      function.scale = function.scale / divisor;
      if (function.shift) function.shift = function.shift / divisor;
      if (quantize->zero_point) {
        const Value point = reshape(cast(quantize->zero_point, f32), Shape{});
        function.shift =
            function.shift ? function.shift + point : broadcast_to(point, function.scale.shape());
      }
    }
    Value y = product->sums * function.scale;
    if (function.shift) y = y + function.shift;
    if (chain.relu) y = relu(y);
    return quantize ? internal::round_saturate(y, {.to = Type{quantize->to, {}, {}}}) : y;
  }

  ir::Graph& graph_;
  const Options& options_;
  const Target& target_;
  std::map<const ir::Op*, bool> weights_;
  Uses uses_;
  std::set<Value> outputs_;
};

bool run_fuse_dequantize(ir::Program& program, const Options& options, const Target& target) {
  return Fuser(program.main(), options, target).run();
}

}  // namespace

Pass fuse_dequantize_pass() {
  return {.name = "fuse_dequantize",
          .doc =
              "Computes convolutions and products of dequantized operands on the integers, "
              "where that is faster.",
          .needs = {"typed"},
          .provides = {},
          .run = run_fuse_dequantize};
}

}  // namespace fluid
