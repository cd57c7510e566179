#include <cmath>
#include <utility>

#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/schedule.h"
#include "ops/table.h"

namespace fluid {
namespace {

const OpDef& optimizer_named(const InferCtx& c, const std::string& name) {
  const OpDef* def = find_optimizer(name);
  c.require(def != nullptr,
            "unknown optimizer '" + name + "'" + did_you_mean(name, optimizer_names()));
  return *def;
}

/// Throws UserError for an unknown schedule or invalid settings.
void check_schedule(const InferCtx& c) {
  const std::string name = c.attrs().get_or("schedule", std::string());
  const Attrs settings = schedule_settings(c.attrs());
  if (name.empty()) {
    c.require(settings.size() == 1, "has settings of a schedule, but no attribute 'schedule'");
    return;
  }
  const OpDef* def = find_schedule(name);
  c.require(def != nullptr,
            "unknown schedule '" + name + "'" + did_you_mean(name, schedule_names()));
  std::vector<Type> operands(def->inputs->size(), Type{f64, {}, {}});
  operands[0] = Type{i64, {}, {}};
  const Attrs complete = complete_attrs(*def, settings, c.loc());
  (*def->infer)(InferCtx(*def->name, operands, complete, c.loc()));
}

/// Checks the lengths of attributes `waits`, `cuts` and `bucket` for `parameters` parameters, and
/// the range of `rank`. `cuts` concatenates the shard bounds (kShardBounds) of all parameters.
void check_parameters(const InferCtx& c, size_t parameters) {
  const auto waits = c.attrs().get_or("waits", std::vector<int64_t>()).size();
  const auto cuts = c.attrs().get_or("cuts", std::vector<int64_t>()).size();
  const auto buckets = c.attrs().get_or("bucket", std::vector<int64_t>()).size();
  const auto rank = c.attrs().get_or("rank", int64_t{0});
  const bool none = cuts == 0 && buckets == 0;
  const bool each = parameters > 0 && cuts % parameters == 0 && buckets == parameters;
  c.require(waits == 0 || waits == parameters, "needs waits for each of its parameters, or none");
  c.require(none || (each && rank >= 0 && static_cast<size_t>(rank) + 1 < cuts / parameters),
            "needs cuts and a bucket for each of its parameters, or for none");
}

void check_averages(const InferCtx& c) {
  if (c.attrs().has("ema_decay")) require_in_range(c, "ema_decay", 0, 1);
  if (c.attrs().has("lookahead_alpha")) require_in_range(c, "lookahead_alpha", 0);
  for (const auto& [name, low] :
       {std::pair("swa_start", 0), {"swa_every", 1}, {"lookahead_every", 0}}) {
    const int64_t value = c.attrs().get_or(name, int64_t{low});
    c.require(value >= low, "attribute '" + std::string(name) + "' must be " + std::to_string(low) +
                                " or more, not " + std::to_string(value));
  }
  c.require(
      c.attrs().get_or("ema_decay", 0.0) == 0 || c.attrs().get_or("swa_start", int64_t{0}) == 0,
      "keeps averages by 'ema_decay' or from 'swa_start', not both");
}

std::vector<Type> infer_train(const InferCtx& c) {
  const Type& loss = c.in(0);
  c.require(is_float(loss.dtype) && loss.shape.empty(),
            "the loss must be a float scalar, got " + loss.str() + "; take its mean");
  const size_t gradients = c.attrs().get_or("parameters", std::vector<std::string>()).size();
  const size_t sparse = c.attrs().get_or("sparse", std::vector<std::string>()).size();
  const bool predicated = c.attrs().get_or("predicated", false);
  c.require(c.arity() == 1 + (gradients > 0 ? 1 + gradients + sparse : 0) + (predicated ? 1 : 0),
            "needs a seed, one gradient for each of its parameters and row numbers for each of its "
            "sparse parameters");
  check_parameters(c, gradients);
  require_in_range(c, "lr", 0);
  for (const char* clip : {"clip_value", "clip_norm", "clip_global_norm"}) {
    if (c.attrs().has(clip)) require_in_range(c, clip, 0);
  }
  check_averages(c);
  check_schedule(c);
  const OpDef& optimizer = optimizer_named(c, c.attr<std::string>("optimizer"));
  const Attrs settings = complete_attrs(optimizer, optimizer_settings(c.attrs()), c.loc());
  const size_t states = optimizer_states(optimizer, settings).size();
  const size_t others = optimizer.optimizer->tensors.size() + optimizer.optimizer->scalars.size();
  std::vector<Type> operands(4 + states + others, Type{f32, {}, {}});
  operands[3] = Type{i64, {}, {}};
  (*optimizer.infer)(InferCtx(*optimizer.name, operands, settings, c.loc()));
  return {};
}

}  // namespace

Attrs optimizer_settings(const Attrs& train_attrs) {
  Attrs settings = train_attrs;
  for (const AttrDef& own : *find_op("train")->attrs) settings.erase(own.name);
  for (const auto& [name, value] : train_attrs) {
    if (name.starts_with(kSchedulePrefix)) settings.erase(name);
  }
  return settings;
}

OpDef train_op() {
  return OpDef{
      .name = "train",
      .doc =
          "Requests a training step. The passes append the backward graph of the loss and the "
          "update of every parameter that the loss depends on. Other attributes are settings of "
          "the optimizer or, with the prefix schedule_, of the schedule.",
      .inputs =
          {{"loss", "float scalar to minimise"},
           {"step",
            "appended by the passes: the seed of backward (gradient of the loss with respect "
            "to itself), the gradient of each of `parameters`, the row numbers i64[n] of each "
            "of `sparse` and, if `predicated`, a bool that says whether to apply the step",
            true, true}},
      .attrs = {{"recipe", std::string(), "name of the recipe; empty: the only recipe"},
                {"trains", std::vector<std::string>{},
                 "names of the parameters to train; empty: all trainable parameters that the loss "
                 "depends on"},
                {"penalties", int64_t{0},
                 "number of parameter penalties that the loss adds last: loss = ((l + p1) + p2)"},
                {"optimizer", std::string("sgd"), "name of the optimizer's op", true},
                {"lr", 0.001, "learning rate", true},
                {"parameters", std::vector<std::string>{},
                 "names of the parameters, in the order of their gradients"},
                {"sparse", std::vector<std::string>{},
                 "names of the parameters whose gradients are rows [n, D] of the gradient"},
                {"waits", std::vector<int64_t>{},
                 "for each gradient, the number of the last forward or backward collective that it "
                 "depends on; empty: it depends on none"},
                {"predicated", false, "whether the last operand decides if the step is applied"},
                {"cuts", std::vector<int64_t>{},
                 "for a sharded optimizer, of each parameter: the first element of each rank's "
                 "shard, then the number of elements"},
                {"bucket", std::vector<int64_t>{},
                 "for a sharded optimizer: the bucket of each parameter"},
                {"rank", int64_t{0}, "for a sharded optimizer: the rank of this process"},
                {"schedule", std::string(),
                 "learning rate schedule, such as cosine, with the settings schedule_*; empty: a "
                 "constant learning rate"},
                {"clip_value", 0.0,
                 "clips each gradient element to [-clip_value, clip_value]; 0: off"},
                {"clip_norm", 0.0, "maximum L2 norm of each gradient; 0: off"},
                {"clip_global_norm", 0.0, "maximum global L2 norm of all gradients; 0: off"},
                {"ema_decay", 0.0,
                 "decay of the exponential moving averages of the parameters, in [0, 1); 0: none"},
                {"swa_start", int64_t{0},
                 "number of the first update whose parameters the equal-weight averages include; "
                 "0: no averages"},
                {"swa_every", int64_t{1}, "number of updates between two that they include"},
                {"lookahead_every", int64_t{0},
                 "number of updates between two of lookahead's slow weights; 0: no lookahead"},
                {"lookahead_alpha", 0.5, "step size of the slow weights"}},
      .outputs = {},
      .infer = infer_train,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {},
      .lower = Directive{},
      .kernels = {},
      .version = 1,
      .open_attrs = true,
  };
}

}  // namespace fluid
