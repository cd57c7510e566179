#include "ops/optim/schedule.h"

#include "ops/optim/optimizer.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr std::string_view kSuffix = "_schedule";

}  // namespace

OpDef schedule_def(ScheduleDef schedule) {
  std::vector<AttrDef> attrs = {{"lr", 0.001, "initial learning rate", true}};
  attrs.insert(attrs.end(), schedule.settings.begin(), schedule.settings.end());
  std::vector<PortDef> inputs = {{"update", "i64 scalar: number of completed updates"}};
  inputs.insert(inputs.end(), schedule.operands.begin(), schedule.operands.end());
  std::vector<InPlace> in_place;
  if (!schedule.operands.empty()) in_place.push_back({.out = 0, .in = 1});
  return OpDef{
      .name = schedule.name + std::string(kSuffix),
      .doc = std::move(schedule.doc),
      .inputs = std::move(inputs),
      .attrs = std::move(attrs),
      .outputs = {{"rate", "f64 scalar: learning rate of this update"}},
      .infer =
          [check = std::move(schedule.check)](const InferCtx& c) {
            c.require(c.in(0) == Type{i64, {}, {}},
                      "the update counter must be an i64 scalar, got " + c.in(0).str());
            for (size_t i = 1; i < c.arity(); ++i) {
              c.require(is_float(c.in(i).dtype) && c.in(i).shape.empty(),
                        "the factor must be a float scalar, got " + c.in(i).str());
            }
            require_in_range(c, "lr", 0);
            check(c);
            return std::vector{Type{f64, {}, {}}};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.flops = 8}; },
      .in_place = in_place,
      .lower = Map{[rate = std::move(schedule.rate)](const LowerCtx& c) {
        return std::vector{rate(c, scalar::cast(c.in(0), f64))};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

const OpDef* find_schedule(const std::string& name) { return find_op(name + std::string(kSuffix)); }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const OpDef& def : op_table()) {
    const std::string& name = *def.name;
    if (name.ends_with(kSuffix)) names.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  return names;
}

Attrs schedule_settings(const Attrs& train_attrs) {
  Attrs settings = {{"lr", train_attrs.get<double>("lr")}};
  for (const auto& [name, value] : train_attrs) {
    if (name.starts_with(kSchedulePrefix)) settings.set(name.substr(kSchedulePrefix.size()), value);
  }
  return settings;
}

}  // namespace fluid
