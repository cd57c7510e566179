// Batch normalisation against its formula in double.

#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::norm_samples {
namespace {

/// Calls visit(channel, position) for every element of [N, C, ...], in row-major order.
void for_each_element(const Tensor& x, const std::function<void(int64_t, int64_t)>& visit) {
  int64_t inner = 1;
  for (size_t d = 2; d < x.shape().size(); ++d) inner *= x.shape()[d];
  for (int64_t i = 0; i < x.numel(); ++i) visit(i / inner % x.shape()[1], i);
}

std::vector<Tensor> normalised(const Sample& s) {
  const Tensor& x = s.inputs[0];
  const auto channels = static_cast<size_t>(x.shape()[1]);
  const double count = static_cast<double>(x.numel()) / static_cast<double>(channels);
  std::vector<double> mean(channels), var(channels), y(static_cast<size_t>(x.numel()));
  for_each_element(x, [&](int64_t c, int64_t i) { mean[static_cast<size_t>(c)] += x.at(i); });
  for (double& m : mean) m /= count;
  for_each_element(x, [&](int64_t c, int64_t i) {
    var[static_cast<size_t>(c)] += std::pow(x.at(i) - mean[static_cast<size_t>(c)], 2);
  });
  for (double& v : var) v /= count;
  const double eps = s.attrs.get_or("eps", 1e-5);
  for_each_element(x, [&](int64_t c, int64_t i) {
    const auto k = static_cast<size_t>(c);
    const double xhat = (x.at(i) - mean[k]) / std::sqrt(var[k] + eps);
    y[static_cast<size_t>(i)] = xhat * s.inputs[1].at(c) + s.inputs[2].at(c);
  });
  const std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  const std::vector<int64_t> per_channel = {x.shape()[1]};
  return {Tensor::of<double>(shape, y), Tensor::of<double>(per_channel, mean),
          Tensor::of<double>(per_channel, var)};
}

OpTest batch_norm_test() {
  OpTest t;
  t.op = "batch_norm";
  const auto sample = [&](const std::vector<int64_t>& shape, Attrs attrs, std::vector<int> batch) {
    const std::vector<int64_t> c = {shape[1]};
    t.samples.push_back(
        {{random_tensor(shape), random_tensor(c, 0.5, 2, 1), random_tensor(c, -1, 1, 2),
          random_tensor(c, -1, 1, 3), random_tensor(c, 0.5, 2, 4)},
         std::move(attrs),
         std::move(batch)});
  };
  sample({4, 3, 5, 7}, {}, {});
  sample({7, 2, 3, 3}, {{"eps", 0.5}}, {0});
  sample({11, 5}, {}, {0});
  sample({3, 1, 13}, {}, {});
  sample({2, 17, 1, 1}, {{"eps", 0.25}}, {});
  sample({2, 0, 3, 3}, {}, {});
  t.reference = normalised;
  t.slack = 16;
  const Type x = {f32, {4, 3, 5, 5}, {}}, c = {f32, {3}, {}};
  t.bad = {
      {{{f32, {3}, {}}, c, c, c, c}, {}, "batch_norm: expects a float [N, C, ...], got f32[3]"},
      {{x, {f32, {4}, {}}, c, c, c},
       {},
       "batch_norm: operand 1 must be f32[3], one number per channel, got f32[4]"},
      {{x, c, c, c, c}, {{"eps", -1.0}}, "batch_norm: attribute 'eps' must not be negative"}};
  return t;
}

OpTest bn_update_test() {
  OpTest t;
  t.op = "bn_update";
  for (const double momentum : {0.1, 0.25, 1.0}) {
    for (const int64_t channels : {int64_t{5}, int64_t{1}, int64_t{0}}) {
      const double count = channels == 1 ? 1 : 7;
      t.samples.push_back({{random_tensor({channels}), random_tensor({channels}, 0.5, 2, 1),
                            random_tensor({channels}, -1, 1, 2), random_tensor({channels}, 0, 2, 3),
                            Tensor::of<double>({}, {{count}})},
                           {{"momentum", momentum}},
                           {}});
    }
  }
  t.reference = [](const Sample& s) {
    std::vector<Tensor> results = {s.inputs[0].copy(), s.inputs[1].copy()};
    const double momentum = s.attrs.get_or("momentum", 0.1), count = s.inputs[4].at(0);
    const double unbiased = count > 1 ? count / (count - 1) : 1;
    for (int64_t i = 0; i < results[0].numel(); ++i) {
      const auto k = static_cast<size_t>(i);
      double& mean = results[0].as<double>()[k];
      double& var = results[1].as<double>()[k];
      mean += momentum * (s.inputs[2].at(i) - mean);
      var += momentum * (s.inputs[3].at(i) * unbiased - var);
    }
    return results;
  };
  const Type c = {f32, {3}, {}}, n = {f32, {}, {}};
  t.bad = {
      {{n, c, c, c, n}, {}, "bn_update: expects running statistics of float [C], got f32[]"},
      {{c, c, n, c, n}, {}, "bn_update: operand 2 must be like f32[3], got f32[]"},
      {{c, {f64, {3}, {}}, c, c, n}, {}, "bn_update: the running statistics must be of one dtype"},
      {{c, c, c, c, c}, {}, "bn_update: the count must be a float scalar, got f32[3]"},
      {{c, c, c, c, n},
       {{"momentum", -1.0}},
       "bn_update: attribute 'momentum' must be a number of 0.0 or more, not -1.0"}};
  return t;
}

const AddOpTest kBatchNorm(batch_norm_test());
const AddOpTest kBnUpdate(bn_update_test());

}  // namespace
}  // namespace fluid::testing::norm_samples
