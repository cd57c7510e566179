#include "ops/metric/statistics.h"

#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {

OpDef metric_def(MetricDef def) {
  return OpDef{
      .name = def.name,
      .doc = def.doc,
      .inputs = def.inputs,
      .attrs = def.attrs,
      .outputs = {{"statistics", "f64 " + def.statistics}},
      .infer =
          [shape = def.shape](const InferCtx& c) {
            return std::vector{Type{f64, shape(c), {}}};
          },
      .grad = NoGrad{},
      .effects = Metric{def.value},
      .amp = {Amp::kF32},
      .cost = [flops = def.flops](const CostCtx& c) { return Cost{.flops = flops(c)}; },
      .in_place = {},
      .lower = Expand{[compute = def.compute](const ExpandCtx& c) { return Values{compute(c)}; }},
      .kernels = {},
      .version = def.version,
  };
}

double mean_of_statistics(std::span<const double> statistics, const Attrs&) {
  return statistics[0] / statistics[1];
}

Value concat_statistics(const Values& parts) {
  Values vectors;
  for (const Value& part : parts) {
    const Value statistic = cast(part, f64);
    vectors.push_back(part.shape().empty() ? reshape(statistic, {1}) : statistic);
  }
  return concat(vectors, {.axis = 0});
}

Value count_elements(const ExpandCtx& c, const Shape& shape) {
  return internal::numel(*c.op().graph(), {.of = Type{f64, shape, {}}});
}

}  // namespace fluid
