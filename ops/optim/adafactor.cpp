#include <cmath>
#include <limits>

#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/whole_parameter.h"

namespace fluid {
namespace {

double epsilon_of(const WholeParameter& p) {
  const auto eps = p.settings().get<double>("eps1");
  if (eps != 0) return eps;
  return compute_dtype(p.param().dtype()) == f64 ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon();
}

double root_of_elements(const WholeParameter& p) {
  return std::sqrt(static_cast<double>(p.shape().numel().size));
}

/// Sets `state` to lerp(state, mean, weight), and returns the new value.
Value averaged(WholeParameter& p, Value state, Value mean, Value weight) {
  const Value updated = state + (mean - state) * weight;
  p.set_state(state, updated);
  return updated;
}

/// Sums of grad^2 over the last dimension, and over the second-to-last dimension. As in
/// torch.optim.Adafactor and fairseq, a tensor of rank above 2 is factored over its last two
/// dimensions: a convolution filter [out, in, h, w] over h and w.
Values sums_of_squares(WholeParameter& p) {
  const auto last = static_cast<int64_t>(p.shape().size()) - 1;
  const Value squares = square(p.padded(p.grad()));
  return {sum(squares, {.axes = {last}, .keep_dims = true}),
          sum(squares, {.axes = {last - 1}, .keep_dims = true})};
}

/// The second moment, estimated from its row and column means. `sums`: result of sums_of_squares(),
/// summed over the ranks.
Value factored_moment(WholeParameter& p, const Values& sums, Value weight) {
  const size_t rank = p.shape().size();
  const auto columns = static_cast<double>(p.shape()[rank - 1].size);
  const auto rows = static_cast<double>(p.shape()[rank - 2].size);
  const Value row = averaged(p, p.state("row_var", sums[0].type()), sums[0] / columns, weight);
  const Value column = averaged(p, p.state("col_var", sums[1].type()), sums[1] / rows, weight);
  const Value mean_row = mean(row, {.axes = {static_cast<int64_t>(rank) - 2}, .keep_dims = true});
  return p.shard_of(row * column / maximum(mean_row, scalar_like(mean_row, epsilon_of(p))));
}

Value adafactor_step(WholeParameter& p) {
  const Attrs& settings = p.settings();
  const double eps = epsilon_of(p), elements = root_of_elements(p);
  const Value t = cast(p.update() + 1, p.lr().dtype());
  const Value weight = exp(log(t) * -settings.get<double>("decay_exponent"));
  const bool is_factored = p.shape().size() > 1;
  Values sums = {internal::sum_squares(p.param())};
  if (is_factored) {
    for (const Value s : sums_of_squares(p)) sums.push_back(s);
  }
  sums = p.sum_over_shards(sums);
  const Value moment = is_factored
                           ? factored_moment(p, {sums[1], sums[2]}, weight)
                           : averaged(p, p.sharded_state("variance"), square(p.grad()), weight);
  const Value step = p.grad() * rsqrt(maximum(moment, scalar_like(moment, eps * eps)));
  const Value step_norm = sqrt(p.sum_over_shards({internal::sum_squares(step)})[0]);
  const Value excess = step_norm / (elements * settings.get<double>("clip_threshold"));
  const Value scale = sqrt(sums[0]) / elements;
  const Value rate =
      maximum(scale, scalar_like(scale, settings.get<double>("eps2"))) * minimum(p.lr(), rsqrt(t));
  return step * (rate / maximum(excess, scalar_like(excess, 1)));
}

}  // namespace

OpDef adafactor_op() {
  return optimizer_def({
      .type = "Adafactor",
      .doc = "Adafactor (Shazeer and Stern, 2018), like torch.optim.Adafactor: divides the "
             "gradient by the square root of its second moment. The second moment is a moving "
             "average, which is factored into row and column means for tensors of rank 2 or more. "
             "The newest gradient has weight t^-decay_exponent in the average. The step is scaled "
             "to an RMS of at most clip_threshold, then by min(lr, 1 / sqrt(t)) * max(eps2, RMS of "
             "the parameter).",
      .lr = 0.01,
      .settings = {{"decay_exponent", 0.8, "the newest gradient has weight t^-decay_exponent"},
                   {"eps1", 0.0,
                    "lower bound of the root of the second moment; 0: the epsilon of "
                    "the dtype"},
                   {"eps2", 1e-3, "lower bound of the RMS of the parameter"},
                   {.name = "clip_threshold",
                    .fallback = 1.0,
                    .doc = "upper bound of the RMS of the unscaled step",
                    .low = 1},
                   decoupled_weight_decay(0)},
      .tensors = {{"step", "change of the parameter, from its moments", adafactor_step}},
      .flops = 12,
      .update = [](const OptimizerCtx& c) { return std::vector{c.decayed_param() - c.tensor(0)}; },
  });
}

}  // namespace fluid
