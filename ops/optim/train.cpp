#include <cmath>

#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/schedule.h"
#include "ops/table.h"

namespace fluid {
namespace {

const OpDef& optimizer_named(const InferCtx& c, const std::string& name) {
  std::vector<std::string> known;
  for (const OpDef& def : op_table()) {
    if (is_optimizer(def)) known.push_back(*def.name);
  }
  const OpDef* def = find_op(name);
  c.require(def != nullptr && is_optimizer(*def),
            "unknown optimizer '" + name + "'" + did_you_mean(name, known));
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

/// Checks `waits`, `cuts`, `bucket` and `rank`. `cuts` holds an equal number of entries for each
/// parameter; the last entry is the number of elements.
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

std::vector<Type> infer_train(const InferCtx& c) {
  const Type& loss = c.in(0);
  c.require(is_float(loss.dtype) && loss.shape.empty(),
            "the loss must be a float scalar, got " + loss.str() + "; take its mean");
  const size_t gradients = c.attrs().get_or("parameters", std::vector<std::string>()).size();
  const bool predicated = c.attrs().get_or("predicated", false);
  c.require(c.arity() == 1 + (gradients > 0 ? 1 + gradients : 0) + (predicated ? 1 : 0),
            "needs a seed, and one gradient for each of its parameters");
  check_parameters(c, gradients);
  require_setting(c, "lr", 0);
  for (const char* clip : {"clip_value", "clip_norm", "clip_global_norm"}) {
    if (c.attrs().has(clip)) require_setting(c, clip, 0);
  }
  check_schedule(c);
  const OpDef& optimizer = optimizer_named(c, c.attr<std::string>("optimizer"));
  const Attrs settings = complete_attrs(optimizer, optimizer_settings(c.attrs()), c.loc());
  const Type f = {f32, {}, {}}, counter = {i64, {}, {}};
  std::vector<Type> operands(optimizer.inputs->size(), f);
  operands[3] = counter;
  (*optimizer.infer)(InferCtx(*optimizer.name, operands, settings, c.loc()));
  return {};
}

}  // namespace

Attrs optimizer_settings(const Attrs& train) {
  Attrs settings = train;
  for (const AttrDef& own : *find_op("train")->attrs) settings.erase(own.name);
  for (const auto& [name, value] : train) {
    if (name.starts_with(kSchedulePrefix)) settings.erase(name);
  }
  return settings;
}

OpDef train_op() {
  return OpDef{
      .name = "train",
      .doc =
          "Asks for a training step: the passes append the backward graph of the loss and an "
          "update of every parameter that it depends on. Attributes beyond those listed are the "
          "optimizer's and, with the prefix schedule_, the schedule's.",
      .inputs = {{"loss", "float scalar to minimise"},
                 {"step",
                  "the passes append them: the gradient of the loss for itself, one of each of "
                  "`parameters`, and if `predicated` whether the step is applied",
                  true, true}},
      .attrs =
          {{"optimizer", std::string("sgd"), "name of the optimizer's op", true},
           {"lr", 0.001, "learning rate", true},
           {"parameters", std::vector<std::string>{}, "in the order of the gradients"},
           {"waits", std::vector<int64_t>{},
            "of each gradient, the last exchange between processes that it waits for, by its "
            "number; without any, none waits"},
           {"predicated", false, "whether the last operand says if the step is applied"},
           {"cuts", std::vector<int64_t>{},
            "where several processes share the update: of each parameter, where each one's "
            "elements begin, and their number"},
           {"bucket", std::vector<int64_t>{}, "the one in which each parameter then travels"},
           {"rank", int64_t{0}, "which of the processes this is"},
           {"schedule", std::string(),
            "of the learning rate: step, cosine, plateau, manual; its settings are the attributes "
            "schedule_*; "
            "without one the rate stays"},
           {"clip_value", 0.0, "each element of a gradient is clipped to [-x, x]; 0: it is not"},
           {"clip_norm", 0.0, "each gradient is scaled down to this norm; 0: it is not"},
           {"clip_global_norm", 0.0,
            "all gradients are scaled down until their common norm is this; 0: they are not"}},
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
