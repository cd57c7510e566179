#include <algorithm>
#include <cmath>

#include "ops/internal_functions.h"
#include "ops/newton_schulz.h"
#include "ops/operators.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/whole_parameter.h"
#include "ops/record.h"

namespace fluid {
namespace {

constexpr const char* kOriginal = "original";
constexpr const char* kMatchRms = "match_rms_adamw";
constexpr const char* kSpectral = "spectral_unclamped";

Expr new_moment(const OptimizerCtx& c) {
  return moving_average(c.state("m"), c.grad(), c.number("momentum"));
}

/// Newton-Schulz iterations, which approach the orthogonal factor of the polar decomposition of
/// `x`.
Value orthogonalized(Value x, const Attrs& settings) {
  const auto number = [&](const char* name) { return settings.get<double>(name); };
  const Value norm = sqrt(internal::sum_squares(x));
  x = x / maximum(norm, scalar_like(norm, number("eps")));
  const NewtonSchulz<double> coefficients = {number("ns_a"), number("ns_b"), number("ns_c")};
  for (int64_t i = 0; i < settings.get<int64_t>("ns_steps"); ++i) {
    x = newton_schulz_step(x, coefficients);
  }
  return x;
}

/// Learning rate factor for a weight [in, out].
double rate_factor(const Shape& shape, const std::string& rule) {
  const auto in = static_cast<double>(shape[0].size), out = static_cast<double>(shape[1].size);
  if (rule == kMatchRms) return 0.2 * std::sqrt(std::max(in, out));
  return std::sqrt(rule == kSpectral ? out / in : std::max(1.0, out / in));
}

Value muon_direction(WholeParameter& p) {
  const Attrs& settings = p.settings();
  const Value momentum =
      record(*p.param().op()->graph(), "muon_momentum", p.operands(), settings, {})[0];
  const Value whole = p.sum_over_shards({p.padded(momentum)})[0];
  return p.shard_of(orthogonalized(whole, settings) *
                    rate_factor(p.shape(), settings.get<std::string>("adjust_lr")));
}

OptimizerDef muon() {
  const double infinity = std::numeric_limits<double>::infinity();
  return {
      .type = "Muon",
      .doc =
          "Muon (Jordan et al., 2024), like torch.optim.Muon: m is the moving average of the "
          "gradient of a matrix. The step is the orthogonalized m, or grad + momentum * (m - grad) "
          "with `nesterov`, by ns_steps iterations of Newton-Schulz, X = ns_a X + (ns_b G + ns_c "
          "G^2) X with G = X X^T, in the parameter's compute dtype. adjust_lr scales lr: original "
          "by sqrt(max(1, out / in)) of a matrix [in, out], match_rms_adamw by 0.2 sqrt(max(in, "
          "out)), spectral_unclamped by sqrt(out / in). AdamW updates the parameters that are not "
          "matrices.",
      .lr = 0.001,
      .settings = {{"momentum", 0.95, "momentum factor", 0, 1},
                   {"nesterov", true, "uses Nesterov momentum"},
                   {"ns_a", 3.4445, "coefficient of Newton-Schulz", -infinity},
                   {"ns_b", -4.775, "coefficient of Newton-Schulz", -infinity},
                   {"ns_c", 2.0315, "coefficient of Newton-Schulz", -infinity},
                   {"ns_steps", int64_t{5}, "number of iterations of Newton-Schulz", 1, 100},
                   {"eps", 1e-7, "lower bound of the norm of the matrix"},
                   {.name = "adjust_lr",
                    .fallback = std::string(kOriginal),
                    .doc = "rule that scales the learning rate by the shape",
                    .choices = {kOriginal, kMatchRms, kSpectral}},
                   decoupled_weight_decay(0.1),
                   {"adamw_lr_scale", 1.0, "factor of lr for parameters that are not matrices"},
                   {"adamw_beta1", 0.9, "beta1 of parameters that are not matrices", 0, 1},
                   {"adamw_beta2", 0.999, "beta2 of parameters that are not matrices", 0, 1},
                   {"adamw_eps", 1e-8, "eps of parameters that are not matrices"}},
      .states = {{"m"}},
      .tensors = {{"direction", "orthogonalized step", muon_direction}},
      .non_matrix_optimizer = "adamw",
      .flops = 6,
      .update =
          [](const OptimizerCtx& c) {
            return std::vector{c.decayed_param() - c.lr() * c.tensor(0), new_moment(c)};
          },
  };
}

}  // namespace

OpDef muon_op() { return optimizer_def(muon()); }

OpDef muon_momentum_op() {
  OptimizerDef def = muon();
  def.tensors.clear();
  return optimizer_value_def(def, "muon_momentum", "The matrix that muon orthogonalizes.",
                             [](const OptimizerCtx& c) {
                               const Expr m = new_moment(c);
                               if (!c.flag("nesterov")) return m;
                               return c.grad() + (m - c.grad()) * c.number("momentum");
                             });
}

}  // namespace fluid
