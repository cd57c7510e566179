#include "tests/support/op_harness.h"

namespace fluid::testing::metric_samples {
namespace {

OpTest metric_test() {
  OpTest t;
  t.op = "metric";
  t.samples = {{{random_tensor({}), random_tensor({})}, {}, {}}};
  t.reference = [](const Sample& s) { return s.inputs; };
  const std::string expects = "metric: expects two float scalars of one type, got ";
  t.bad = {{{{f32, {2}, {}}, {f32, {2}, {}}}, {}, expects + "f32[2] and f32[2]"},
           {{{f32, {}, {}}, {f64, {}, {}}}, {}, expects + "f32[] and f64[]"},
           {{{i64, {}, {}}, {i64, {}, {}}}, {}, expects + "i64[] and i64[]"}};
  return t;
}

const AddOpTest kMetric(metric_test());

}  // namespace
}  // namespace fluid::testing::metric_samples
