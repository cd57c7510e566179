#include <random>

#include "tests/support/op_harness.h"

namespace fluid::testing {

std::vector<OpTest>& op_tests() {
  static std::vector<OpTest> tests;
  return tests;
}

Tensor random_tensor(std::vector<int64_t> shape, double low, double high, int salt) {
  Tensor t(f64, std::move(shape));
  std::mt19937_64 bits(static_cast<uint64_t>(t.numel() * 1000 + salt));
  for (double& x : t.as<double>()) {
    x = low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53);
  }
  return t;
}

Tensor bool_tensor(std::vector<int64_t> shape, int salt) {
  const Tensor t = random_tensor(std::move(shape), 0, 1, salt);
  Tensor flags(boolean, t.shape());
  for (int64_t i = 0; i < t.numel(); ++i) static_cast<uint8_t*>(flags.data())[i] = t.at(i) < 0.5;
  return flags;
}

std::vector<Sample> unary_samples(double low, double high) {
  std::vector<Sample> samples;
  const std::vector<std::vector<int64_t>> shapes = {{3, 5}, {}, {0}, {1}, {37}, {2, 1, 3}};
  for (const auto& shape : shapes) samples.push_back({{random_tensor(shape, low, high)}, {}, {}});
  samples.push_back({{random_tensor({7, 3}, low, high)}, {}, {0}});
  return samples;
}

std::vector<Sample> binary_samples(double low, double high) {
  using Shape2 = std::pair<std::vector<int64_t>, std::vector<int64_t>>;
  std::vector<Sample> samples;
  const std::vector<Shape2> shapes = {{{3, 5}, {3, 5}}, {{3, 5}, {5}},       {{5}, {3, 5}},
                                      {{3, 1}, {1, 5}}, {{}, {7}},           {{0}, {1}},
                                      {{1}, {1}},       {{2, 1, 3}, {4, 1}}, {{37}, {37}}};
  for (const auto& [a, b] : shapes) {
    samples.push_back({{random_tensor(a, low, high), random_tensor(b, low, high, 1)}, {}, {}});
  }
  samples.push_back(
      {{random_tensor({7, 3}, low, high), random_tensor({3}, low, high, 1)}, {}, {0}});
  samples.push_back(
      {{random_tensor({7, 3}, low, high), random_tensor({7, 1}, low, high, 1)}, {}, {0, 0}});
  return samples;
}

int64_t numel_of(const Extents& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

Tensor gathered(const Tensor& x, const Extents& shape,
                const std::function<Extents(const Extents&)>& from, double fallback) {
  Tensor y(f64, shape);
  for (int64_t i = 0; i < y.numel(); ++i) {
    Extents index(shape.size());
    int64_t rest = i, offset = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    const Extents at = from(index);
    for (size_t d = 0; d < at.size(); ++d) offset = offset * x.shape()[d] + at[d];
    const bool outside = at.empty() && !x.shape().empty();
    y.as<double>()[static_cast<size_t>(i)] = outside ? fallback : x.at(offset);
  }
  return y;
}

Tensor map_elements(const std::vector<Tensor>& inputs,
                    const std::function<double(const std::vector<double>&)>& f, DType dtype) {
  std::vector<int64_t> shape;
  for (const Tensor& t : inputs) {
    while (shape.size() < t.shape().size()) shape.insert(shape.begin(), 1);
    const size_t skip = shape.size() - t.shape().size();
    for (size_t d = 0; d < t.shape().size(); ++d) {
      if (t.shape()[d] != 1) shape[skip + d] = t.shape()[d];
    }
  }
  Tensor out(f64, shape);
  for (int64_t i = 0; i < out.numel(); ++i) {
    std::vector<double> x;
    for (const Tensor& t : inputs) {
      int64_t rest = i, offset = 0, stride = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        const int64_t at = rest % shape[d];
        rest /= shape[d];
        const size_t skip = shape.size() - t.shape().size();
        if (d < skip) continue;
        if (t.shape()[d - skip] != 1) offset += at * stride;
        stride *= t.shape()[d - skip];
      }
      x.push_back(t.at(offset));
    }
    out.as<double>()[static_cast<size_t>(i)] = f(x);
  }
  return dtype == f64 ? out : out.cast(dtype);
}

OpTest unary_test(std::string op, std::function<double(double)> f, double low, double high) {
  OpTest t;
  t.op = std::move(op);
  t.samples = unary_samples(low, high);
  t.reference = [f](const Sample& s) {
    return std::vector{map_elements(s.inputs, [&](const auto& x) { return f(x[0]); })};
  };
  return t;
}

OpTest binary_test(std::string op, std::function<double(double, double)> f, double low,
                   double high) {
  OpTest t;
  t.op = std::move(op);
  t.samples = binary_samples(low, high);
  t.reference = [f](const Sample& s) {
    return std::vector{map_elements(s.inputs, [&](const auto& x) { return f(x[0], x[1]); })};
  };
  return t;
}

}  // namespace fluid::testing
