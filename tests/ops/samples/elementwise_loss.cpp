// Losses of pairs of elements, and of pairs and triplets of rows.

#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::elementwise_loss_samples {
namespace {

/// Applies attribute "reduction" to the elements of a loss.
Tensor reduced(const Sample& s, const Tensor& loss) {
  const std::string reduction = s.attrs.get_or<std::string>("reduction", "none");
  if (reduction == "none") return loss;
  long double total = 0;
  for (int64_t i = 0; i < loss.numel(); ++i) total += loss.at(i);
  if (reduction == "mean") total /= static_cast<long double>(loss.numel());
  return Tensor::of<double>({}, {{static_cast<double>(total)}});
}

Attrs with_reduction(Attrs attrs, const std::string& reduction) {
  attrs.set("reduction", reduction);
  return attrs;
}

/// Makes an operand of a shape; `salt` is the number of the operand.
using Make = std::function<Tensor(Extents, int salt)>;

Make uniform(double low, double high) {
  return [=](Extents shape, int salt) { return random_tensor(std::move(shape), low, high, salt); };
}

/// -1 or 1.
Tensor signs(Extents shape, int salt) {
  Tensor t = random_tensor(std::move(shape), -1, 1, salt);
  for (double& v : t.as<double>()) v = v < 0 ? -1 : 1;
  return t;
}

/// 0 or 1.
Tensor bits(Extents shape, int salt) {
  Tensor t = random_tensor(std::move(shape), 0, 2, salt);
  for (double& v : t.as<double>()) v = std::floor(v);
  return t;
}

using Loss = std::function<double(double x, double target, const Attrs& attrs)>;

/// All reductions with `attrs`.
void add_samples(OpTest& t, const Make& x, const Make& target, const Attrs& attrs) {
  const auto add = [&](const Extents& shape, const std::string& reduction, std::vector<int> batch) {
    t.samples.push_back(
        {{x(shape, 0), target(shape, 1)}, with_reduction(attrs, reduction), std::move(batch)});
  };
  t.samples.push_back({{x({3, 5}, 0), target({3, 5}, 1)}, attrs, {}});
  add({3, 5}, "mean", {});
  add({37}, "sum", {});
  add({}, "none", {});
  add({0}, "sum", {});
  add({0}, "mean", {});
  add({1}, "mean", {});
  add({7, 3}, "mean", {0, 0});
  add({7, 1}, "none", {0, 0});
}

OpTest loss_test(const std::string& op, const Make& x, const Make& target, const Loss& loss,
                 const std::vector<Attrs>& attrs = {{}}) {
  OpTest t;
  t.op = op;
  for (const Attrs& a : attrs) add_samples(t, x, target, a);
  t.reference = [loss](const Sample& s) {
    const std::vector<Tensor> pair(s.inputs.begin(), s.inputs.begin() + 2);
    const auto element = [&](const std::vector<double>& at) { return loss(at[0], at[1], s.attrs); };
    return std::vector{reduced(s, map_elements(pair, element))};
  };
  t.slack = 8;
  const Type two = {f32, {2}, {}};
  t.bad = {{{two, {f32, {1}, {}}},
            {},
            op + ": expects two float tensors of equal type, got f32[2] and f32[1]"},
           {{{i32, {2}, {}}, {i32, {2}, {}}},
            {},
            op + ": expects two float tensors of equal type, got i32[2] and i32[2]"},
           {{two, two},
            with_reduction({}, "max"),
            op + ": reduction must be \"none\", \"mean\" or \"sum\", not \"max\""}};
  return t;
}

/// For targets at the end of their range, where finite differences do not exist.
OpTest without_gradient(OpTest t) {
  t.gradient = false;
  return t;
}

/// A test of values alone: at kinks, infinities and NaN.
OpTest values_test(OpTest t, const std::vector<double>& x, const std::vector<double>& target) {
  const Extents shape = {static_cast<int64_t>(x.size())};
  const Attrs attrs = t.samples[0].attrs;
  t.samples = {{{Tensor::of<double>(shape, x), Tensor::of<double>(shape, target)}, attrs, {}}};
  t.bad = {};
  t.gradient = false;
  return t;
}

OpTest mse_loss_test() {
  return loss_test("mse_loss", uniform(-2, 2), uniform(-2, 2),
                   [](double x, double t, const Attrs&) { return (x - t) * (x - t); });
}

OpTest l1_loss_test() {
  return loss_test("l1_loss", uniform(-2, 2), uniform(-2, 2),
                   [](double x, double t, const Attrs&) { return std::abs(x - t); });
}

OpTest smooth_l1_loss_test() {
  const auto loss = [](double x, double t, const Attrs& attrs) {
    const double e = std::abs(x - t), beta = attrs.get_or("beta", 1.0);
    return e < beta ? e * e / (2 * beta) : e - beta / 2;
  };
  OpTest t = loss_test("smooth_l1_loss", uniform(-2, 2), uniform(-2, 2), loss,
                       {{}, {{"beta", 0.25}}, {{"beta", 0.0}}});
  const Type x = {f32, {2}, {}};
  t.bad.push_back({{x, x},
                   {{"beta", -1.0}},
                   "smooth_l1_loss: attribute 'beta' must not be negative, but is -1.0"});
  return t;
}

OpTest huber_loss_test() {
  const auto loss = [](double x, double t, const Attrs& attrs) {
    const double e = std::abs(x - t), delta = attrs.get_or("delta", 1.0);
    return e < delta ? e * e / 2 : delta * (e - delta / 2);
  };
  OpTest t = loss_test("huber_loss", uniform(-2, 2), uniform(-2, 2), loss, {{}, {{"delta", 0.3}}});
  const Type x = {f32, {2}, {}};
  t.bad.push_back(
      {{x, x}, {{"delta", 0.0}}, "huber_loss: attribute 'delta' must be positive, not 0.0"});
  return t;
}

OpTest kl_div_test(bool log_target) {
  const auto loss = [log_target](double x, double t, const Attrs&) {
    if (log_target) return std::exp(t) * (t - x);
    return (t == 0 ? 0 : t * std::log(t)) - t * x;
  };
  return loss_test("kl_div", uniform(-3, 0), log_target ? uniform(-3, 0) : uniform(0.1, 1), loss,
                   {{{"log_target", log_target}}});
}

OpTest hinge_loss_test() {
  return loss_test("hinge_loss", uniform(-2, 2), signs,
                   [](double x, double t, const Attrs&) { return t * x < 1 ? 1 - t * x : 0; });
}

double clamped_log(double x) { return std::max(std::log(x), -100.0); }

OpTest binary_cross_entropy_test() {
  return loss_test("binary_cross_entropy", uniform(0.1, 0.9), uniform(0, 1),
                   [](double x, double t, const Attrs&) {
                     return -(t * clamped_log(x) + (1 - t) * clamped_log(1 - x));
                   });
}

/// log(1 + exp(x)).
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double logits_loss(double x, double t, const Attrs&) {
  return t * softplus(-x) + (1 - t) * softplus(x);
}

OpTest logits_loss_test(const Make& x, const Make& target) {
  return loss_test("binary_cross_entropy_with_logits", x, target, logits_loss);
}

OpTest pos_weight_test() {
  OpTest t;
  t.op = "binary_cross_entropy_with_logits";
  const auto add = [&](const Extents& x, const Extents& weight, const std::string& reduction,
                       std::vector<int> batch) {
    t.samples.push_back({{random_tensor(x), bits(x, 1), random_tensor(weight, 0.5, 3, 2)},
                         with_reduction({}, reduction),
                         std::move(batch)});
  };
  add({3, 5}, {5}, "none", {});
  add({3, 5}, {3, 5}, "mean", {});
  add({3, 5}, {}, "sum", {});
  add({2, 3, 4}, {3, 1}, "mean", {});
  add({0, 3}, {3}, "sum", {});
  add({7, 3}, {3}, "mean", {0, 0});
  add({7, 3}, {1, 1}, "none", {0, 0});
  t.reference = [](const Sample& s) {
    const auto element = [](const std::vector<double>& v) {
      return v[1] * v[2] * softplus(-v[0]) + (1 - v[1]) * softplus(v[0]);
    };
    return std::vector{reduced(s, map_elements(s.inputs, element))};
  };
  t.slack = 8;
  const Type x = {f32, {2, 3}, {}};
  const std::string what =
      "binary_cross_entropy_with_logits: pos_weight must have x's dtype and broadcast to f32[2, "
      "3], got ";
  t.bad = {{{x, x, {f32, {2}, {}}}, {}, what + "f32[2]"},
           {{x, x, {f64, {3}, {}}}, {}, what + "f64[3]"},
           {{x, x, {f32, {1, 2, 3}, {}}}, {}, what + "f32[1, 2, 3]"}};
  return t;
}

OpTest focal_loss_test(const Make& x, const Make& target) {
  const auto loss = [](double x, double t, const Attrs& attrs) {
    const double p = 1 / (1 + std::exp(-x)), q = 1 / (1 + std::exp(x));
    const double alpha = attrs.get_or("alpha", 0.25);
    const double weight = alpha < 0 ? 1 : alpha * t + (1 - alpha) * (1 - t);
    return weight * std::pow(p * (1 - t) + q * t, attrs.get_or("gamma", 2.0)) *
           logits_loss(x, t, attrs);
  };
  OpTest t = loss_test(
      "focal_loss", x, target, loss,
      {{}, {{"alpha", -1.0}, {"gamma", 0.0}}, {{"alpha", 0.6}, {"gamma", 1.5}}, {{"gamma", 1.0}}});
  const Type two = {f32, {2}, {}};
  t.bad.push_back({{two, two},
                   {{"gamma", -1.0}},
                   "focal_loss: attribute 'gamma' must not be negative, but is -1.0"});
  t.bad.push_back(
      {{two, two}, {{"alpha", 2.0}}, "focal_loss: attribute 'alpha' must be 1 or less"});
  return t;
}

/// Computes f for each row of x [..., D].
template <class F>
Tensor by_row(const Tensor& x, F f) {
  const Extents rows(x.shape().begin(), x.shape().end() - 1);
  Tensor y(f64, rows);
  for (int64_t i = 0; i < y.numel(); ++i) at(y, i) = f(i * x.shape().back(), x.shape().back(), i);
  return y;
}

OpTest dice_loss_test() {
  OpTest t;
  t.op = "dice_loss";
  const auto add = [&](const Extents& shape, Attrs attrs, std::vector<int> batch) {
    t.samples.push_back(
        {{random_tensor(shape, 0, 1), bits(shape, 1)}, std::move(attrs), std::move(batch)});
  };
  add({3, 5}, {}, {});
  add({2, 3, 4}, {{"smooth", 0.5}}, {});
  add({7, 4}, with_reduction({}, "mean"), {0, 0});
  add({7, 2, 3}, {}, {0, 0});
  add({2, 5}, with_reduction({{"smooth", 0.25}}, "sum"), {});
  add({1, 1}, with_reduction({}, "mean"), {});
  add({0, 3}, {}, {});
  add({3, 0}, {}, {});
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &target = s.inputs[1];
    Tensor loss(f64, {x.shape()[0]});
    const double smooth = s.attrs.get_or("smooth", 1.0);
    for (int64_t n = 0; n < loss.numel(); ++n) {
      const int64_t size = x.numel() / loss.numel();
      double both = 0, sum = 0;
      for (int64_t i = n * size; i < (n + 1) * size; ++i) {
        both += x.at(i) * target.at(i);
        sum += x.at(i) + target.at(i);
      }
      at(loss, n) = 1 - (2 * both + smooth) / (sum + smooth);
    }
    return std::vector{reduced(s, loss)};
  };
  t.slack = 8;
  const Type flat = {f32, {2}, {}}, x = {f32, {2, 3}, {}};
  t.bad = {{{flat, flat}, {}, "dice_loss: expects x [N, ...] of rank 2 or more, got f32[2]"},
           {{x, flat},
            {},
            "dice_loss: expects two float tensors of equal type, got f32[2, 3] and f32[2]"},
           {{x, x},
            {{"smooth", -1.0}},
            "dice_loss: attribute 'smooth' must not be negative, but is -1.0"}};
  return t;
}

OpTest cosine_embedding_loss_test() {
  OpTest t;
  t.op = "cosine_embedding_loss";
  const auto add = [&](const Extents& shape, const Tensor& target, Attrs attrs,
                       std::vector<int> batch) {
    t.samples.push_back({{random_tensor(shape), random_tensor(shape, -2, 2, 1), target},
                         std::move(attrs),
                         std::move(batch)});
  };
  Tensor with_zero = signs({6}, 2);
  at(with_zero, 3) = 0;
  add({6, 5}, with_zero, {}, {});
  add({5, 3}, signs({5}, 2).cast(i64), with_reduction({{"margin", -0.5}}, "mean"), {});
  add({2, 3, 4}, signs({2, 3}, 2), with_reduction({{"margin", 0.3}}, "sum"), {});
  add({5}, signs({}, 2), {}, {});
  add({7, 4}, signs({7}, 2).cast(i32), with_reduction({}, "mean"), {0, 0, 0});
  add({7, 3}, signs({7}, 2), {{"margin", -0.9}}, {0, 0, 0});
  add({0, 3}, signs({0}, 2), {}, {});
  t.reference = [](const Sample& s) {
    const Tensor &a = s.inputs[0], &b = s.inputs[1];
    return std::vector{
        reduced(s, by_row(a, [&](int64_t first, int64_t n, int64_t row) {
                  double ab = 0, aa = 1e-12, bb = 1e-12;
                  for (int64_t i = first; i < first + n; ++i) {
                    ab += a.at(i) * b.at(i);
                    aa += a.at(i) * a.at(i);
                    bb += b.at(i) * b.at(i);
                  }
                  const double cosine = ab / std::sqrt(aa * bb), target = s.inputs[2].at(row);
                  if (target == 1) return 1 - cosine;
                  return target == -1 ? std::max(0.0, cosine - s.attrs.get_or("margin", 0.0)) : 0.0;
                }))};
  };
  t.slack = 8;
  const Type x = {f32, {2, 3}, {}}, y = {f32, {2}, {}};
  const std::string op = "cosine_embedding_loss: ";
  t.bad = {{{x, y, y},
            {},
            op + "expects two float tensors [..., D] of equal type, got f32[2, 3] and f32[2]"},
           {{x, x, x}, {}, op + "expects targets [2] of -1 or 1 for rows f32[2, 3], got f32[2, 3]"},
           {{x, x, {f64, {2}, {}}},
            {},
            op + "expects targets [2] of -1 or 1 for rows f32[2, 3], got f64[2]"},
           {{x, x, y}, {{"margin", NAN}}, op + "attribute 'margin' must be finite, not nan"}};
  return t;
}

OpTest triplet_margin_loss_test() {
  OpTest t;
  t.op = "triplet_margin_loss";
  const auto add = [&](const Extents& shape, Attrs attrs, std::vector<int> batch) {
    t.samples.push_back(
        {{random_tensor(shape), random_tensor(shape, -2, 2, 1), random_tensor(shape, -2, 2, 2)},
         std::move(attrs),
         std::move(batch)});
  };
  for (const int64_t p : {1, 2}) {
    for (const bool swap : {false, true}) {
      const Attrs attrs = {{"p", p}, {"swap", swap}};
      add({5, 3}, attrs, {});
      add({7, 4}, with_reduction(attrs, "mean"), {0, 0, 0});
      add({2, 3, 2}, with_reduction({{"p", p}, {"swap", swap}, {"margin", 0.25}}, "sum"), {});
    }
  }
  add({5}, {}, {});
  add({0, 3}, {}, {});
  add({3, 1}, {{"eps", 0.125}}, {});
  t.reference = [](const Sample& s) {
    const auto distance = [&](const Tensor& a, const Tensor& b, int64_t first, int64_t n) {
      const double p = static_cast<double>(s.attrs.get_or<int64_t>("p", 2));
      double total = 0;
      for (int64_t i = first; i < first + n; ++i) {
        total += std::pow(std::abs(a.at(i) - b.at(i) + s.attrs.get_or("eps", 1e-6)), p);
      }
      return std::pow(total, 1 / p);
    };
    return std::vector{reduced(s, by_row(s.inputs[0], [&](int64_t first, int64_t n, int64_t) {
                                 const double near = distance(s.inputs[0], s.inputs[1], first, n);
                                 double far = distance(s.inputs[0], s.inputs[2], first, n);
                                 if (s.attrs.get_or("swap", false)) {
                                   far =
                                       std::min(far, distance(s.inputs[1], s.inputs[2], first, n));
                                 }
                                 return std::max(0.0, near - far + s.attrs.get_or("margin", 1.0));
                               }))};
  };
  t.slack = 8;
  const Type x = {f32, {2, 3}, {}}, y = {f32, {2}, {}};
  const std::string op = "triplet_margin_loss: ";
  t.bad = {{{x, x, y},
            {},
            op + "expects three float tensors [..., D] of equal type, got f32[2, 3], f32[2, 3] and "
                 "f32[2]"},
           {{x, x, x}, {{"p", int64_t{3}}}, op + "attribute 'p' must be 1 or 2, not 3"},
           {{x, x, x}, {{"margin", 0.0}}, op + "attribute 'margin' must be positive, not 0.0"},
           {{x, x, x}, {{"eps", -1.0}}, op + "attribute 'eps' must not be negative, but is -1.0"}};
  return t;
}

const std::vector<double> kSpecial = {NAN, 1, INFINITY, 2, -INFINITY, 0.5, 0.5, 1e4};
const std::vector<double> kTargets = {1, NAN, 2, INFINITY, 1, 0.5, 1.5, -1e4};

const AddOpTest kMse(mse_loss_test());
const AddOpTest kMseValues(values_test(mse_loss_test(), {NAN, 1, INFINITY, 0}, {1, NAN, 2, 0}));
const AddOpTest kL1(l1_loss_test());
const AddOpTest kL1Values(values_test(l1_loss_test(), kSpecial, kTargets));
const AddOpTest kSmoothL1(smooth_l1_loss_test());
const AddOpTest kSmoothL1Values(values_test(smooth_l1_loss_test(), kSpecial, kTargets));
const AddOpTest kHuber(huber_loss_test());
const AddOpTest kHuberValues(values_test(huber_loss_test(), kSpecial, kTargets));
const AddOpTest kKlDiv(kl_div_test(false));
const AddOpTest kKlDivLog(kl_div_test(true));
const AddOpTest kKlDivValues(values_test(kl_div_test(false), {-1, -20, 0}, {0, 0.5, 1}));
const AddOpTest kHinge(hinge_loss_test());
const AddOpTest kHingeValues(values_test(hinge_loss_test(), {1, -1, 1e4, -1e4}, {1, 1, -1, -1}));
const AddOpTest kBinary(binary_cross_entropy_test());
const AddOpTest kBinaryValues(values_test(binary_cross_entropy_test(), {0, 1, 1, 0}, {0, 1, 0, 1}));
const AddOpTest kLogits(logits_loss_test(uniform(-4, 4), uniform(0, 1)));
const AddOpTest kLogitsLarge(logits_loss_test(uniform(-1000, 1000), bits));
const AddOpTest kPosWeight(pos_weight_test());
const AddOpTest kFocal(focal_loss_test(uniform(-4, 4), uniform(0, 1)));
const AddOpTest kFocalLarge(without_gradient(focal_loss_test(uniform(-60, 60), bits)));
const AddOpTest kDice(dice_loss_test());
const AddOpTest kCosineEmbedding(cosine_embedding_loss_test());
const AddOpTest kTripletMargin(triplet_margin_loss_test());

}  // namespace
}  // namespace fluid::testing::elementwise_loss_samples
