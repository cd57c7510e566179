// The power method against loops in double.

#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::power_iteration_samples {
namespace {

void normalise(Tensor& x, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < x.numel(); ++i) squares += x.at(i) * x.at(i);
  for (int64_t i = 0; i < x.numel(); ++i) at(x, i) /= std::max(std::sqrt(squares), eps);
}

OpTest power_iteration_test() {
  OpTest t;
  t.op = "power_iteration";
  const auto add = [&](int64_t rows, int64_t columns, const Attrs& attrs) {
    t.samples.push_back({{random_tensor({rows, columns}), random_tensor({rows}, -1, 1, 1),
                          random_tensor({columns}, -1, 1, 2)},
                         attrs,
                         {}});
  };
  add(4, 3, {});
  add(2, 37, {{"iterations", int64_t{3}}});
  add(1, 1, {});
  add(5, 2, {{"eps", 100.0}});
  t.reference = [](const Sample& s) {
    const Tensor& matrix = s.inputs[0];
    const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
    const double eps = s.attrs.get_or("eps", 1e-12);
    Tensor u = s.inputs[1].copy(), v = s.inputs[2].copy();
    for (int64_t n = 0; n < s.attrs.get_or("iterations", int64_t{1}); ++n) {
      for (int64_t i = 0; i < rows; ++i) {
        at(u, i) = 0;
        for (int64_t j = 0; j < columns; ++j) at(u, i) += matrix.at(i * columns + j) * v.at(j);
      }
      normalise(u, eps);
      for (int64_t j = 0; j < columns; ++j) {
        at(v, j) = 0;
        for (int64_t i = 0; i < rows; ++i) at(v, j) += matrix.at(i * columns + j) * u.at(i);
      }
      normalise(v, eps);
    }
    return std::vector{u, v};
  };
  t.gradient = false;  // the vectors count as constants
  t.slack = 4;
  const Type w = {f32, {3, 2}, {}}, u = {f32, {3}, {}}, v = {f32, {2}, {}};
  t.bad = {{{u, u, v}, {}, "power_iteration: expects a float matrix, got f32[3]"},
           {{w, v, v}, {}, "power_iteration: operand 1 must be f32[3], got f32[2]"},
           {{w, u, u}, {}, "power_iteration: operand 2 must be f32[2], got f32[3]"},
           {{w, u, v},
            {{"iterations", int64_t{0}}},
            "power_iteration: attribute 'iterations' must be positive"},
           {{w, u, v},
            {{"eps", -1.0}},
            "power_iteration: attribute 'eps' must be a number of 0.0 or more, not -1.0"}};
  return t;
}

const AddOpTest kPowerIteration(power_iteration_test());

}  // namespace
}  // namespace fluid::testing::power_iteration_samples
