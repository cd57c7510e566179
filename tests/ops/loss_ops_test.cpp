#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing {
namespace {

// Rows of the last dimension, normalised in double.
std::vector<Tensor> normalised(const Sample& s, bool logarithm) {
  const Tensor& x = s.inputs[0];
  Tensor y(f64, x.shape());
  const auto n = static_cast<size_t>(x.shape().back());
  for (size_t row = 0; n > 0 && row < static_cast<size_t>(x.numel()) / n; ++row) {
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += std::exp(x.as<double>()[row * n + i]);
    for (size_t i = 0; i < n; ++i) {
      const double v = x.as<double>()[row * n + i];
      y.as<double>()[row * n + i] = logarithm ? v - std::log(total) : std::exp(v) / total;
    }
  }
  return {y};
}

OpTest normalising_test(const std::string& op, bool logarithm) {
  OpTest t;
  t.op = op;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{3, 5}, {1, 1}, {37}, {2, 3, 7}, {0, 4}}) {
    t.samples.push_back({{random_tensor(shape)}, {}, {}});
  }
  t.samples.push_back({{random_tensor({7, 3})}, {}, {0}});
  t.reference = [=](const Sample& s) { return normalised(s, logarithm); };
  t.bad = {{{{f32, {2}, {}}}, {{"axis", int64_t{1}}}, op + ": there is no axis 1 in f32[2]"}};
  return t;
}

OpTest square_error_test() {
  OpTest t = binary_test("square_error", [](double a, double b) { return (a - b) * (a - b); });
  t.samples = {{{random_tensor({3, 5}), random_tensor({3, 5}, -2, 2, 1)}, {}, {}},
               {{random_tensor({0}), random_tensor({0})}, {}, {}},
               {{random_tensor({37}), random_tensor({37}, -2, 2, 1)}, {}, {0, 0}}};
  t.bad = {{{{f32, {2}, {}}, {f32, {1}, {}}},
            {},
            "square_error: expects two float tensors of equal type, got f32[2] and f32[1]"}};
  return t;
}

const AddOpTest kSoftmax(normalising_test("softmax", false));
const AddOpTest kLogSoftmax(normalising_test("log_softmax", true));
const AddOpTest kSquareError(square_error_test());

}  // namespace
}  // namespace fluid::testing
