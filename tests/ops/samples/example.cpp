// How an op is tested: samples, a reference by other means, and its wrong uses. Everything else is
// derived (tests/support/op_harness.h).

#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::example_samples {
namespace {

OpTest relu_test() {
  OpTest t = unary_test("relu", [](double x) { return x > 0 ? x : 0; });
  t.bad = {{{{i64, {3}, {}}}, {}, "relu: the operand must be a float tensor, not i64[3]"}};
  return t;
}

OpTest gelu_test() {
  OpTest t;
  t.op = "gelu";
  for (const Sample& s : unary_samples()) {
    t.samples.push_back(s);
    t.samples.push_back({s.inputs, {{"approximate", std::string("tanh")}}, s.batch_dims});
  }
  t.reference = [](const Sample& s) {
    return std::vector{map_elements(s.inputs, [&](const std::vector<double>& at) {
      const double x = at[0];
      if (s.attrs.empty()) return x * std::erfc(-x / std::sqrt(2.0)) / 2;
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3))));
    })};
  };
  t.bad = {{{{f32, {3}, {}}},
            {{"approximate", std::string("yes")}},
            "gelu: approximate must be \"none\" or \"tanh\", not \"yes\""}};
  return t;
}

const AddOpTest kRelu(relu_test());
const AddOpTest kGelu(gelu_test());

}  // namespace
}  // namespace fluid::testing::example_samples
