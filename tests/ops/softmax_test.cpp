#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing {
namespace {

/// exp(x) / sum(exp(x)) along attribute "axis" (the last one by default), or its logarithm.
Tensor softmax_of(const Sample& s, bool logarithm) {
  const Tensor& x = s.inputs[0];
  const std::vector<int64_t>& shape = x.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t given = s.attrs.get_or<int64_t>("axis", -1);
  const int64_t axis = given < 0 ? given + rank : given;
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < rank; ++d) inner *= shape[static_cast<size_t>(d)];
  const int64_t n = shape[static_cast<size_t>(axis)];
  Tensor y(f64, shape);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t first = i / (inner * n) * inner * n + i % inner;
    long double total = 0;
    for (int64_t k = 0; k < n; ++k) total += std::exp(x.at(first + k * inner));
    const double share = static_cast<double>(std::exp(x.at(i)) / total);
    y.as<double>()[static_cast<size_t>(i)] = logarithm ? std::log(share) : share;
  }
  return y;
}

OpTest softmax_test(std::string op, bool logarithm) {
  OpTest t;
  t.op = std::move(op);
  t.samples = {{{random_tensor({3, 5})}, {}, {}},
               {{random_tensor({2, 3, 5})}, {{"axis", int64_t{1}}}, {}},
               {{random_tensor({1})}, {}, {}},
               {{random_tensor({0, 3})}, {}, {}},
               {{random_tensor({37})}, {{"axis", int64_t{0}}}, {}},
               {{random_tensor({7, 10})}, {}, {0}}};
  t.reference = [logarithm](const Sample& s) { return std::vector{softmax_of(s, logarithm)}; };
  t.slack = 4;
  return t;
}

const AddOpTest kSoftmax(softmax_test("softmax", false));
const AddOpTest kLogSoftmax(softmax_test("log_softmax", true));

}  // namespace
}  // namespace fluid::testing
