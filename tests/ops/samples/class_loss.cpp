// Losses of rows of class scores, against their formulas in long double.

#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::class_loss_samples {
namespace {

/// Class indices in [0, classes).
Tensor labels(Extents shape, double classes, DType dtype = i64) {
  Tensor t = random_tensor(std::move(shape), 0, classes, 5);
  for (double& v : t.as<double>()) v = std::floor(v);
  return t.cast(dtype);
}

/// A sample seen as rows of classes.
struct Rows {
  explicit Rows(const Sample& sample) : s(sample), shape(s.inputs[0].shape()) {
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = s.attrs.get_or<int64_t>("axis", -1);
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    classes = shape[at];
    for (size_t d = at + 1; d < shape.size(); ++d) inner *= shape[d];
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(at));
    ignored = s.attrs.get_or<std::vector<int64_t>>("ignore_index", {});
  }

  bool soft() const { return s.inputs[1].dtype() == f64; }
  int64_t position(int64_t row, int64_t k) const {
    return (row / inner * classes + k) * inner + row % inner;
  }
  double x(int64_t row, int64_t k) const { return s.inputs[0].at(position(row, k)); }
  double weight(int64_t k) const { return s.inputs.size() > 2 ? s.inputs[2].at(k) : 1; }
  int64_t given_label(int64_t row) const { return static_cast<int64_t>(s.inputs[1].at(row)); }
  /// A label that names no class is clamped; the step that it is in is rejected.
  int64_t label(int64_t row) const { return std::clamp<int64_t>(given_label(row), 0, classes - 1); }
  bool counts(int64_t row) const {
    return soft() || ignored.empty() || given_label(row) != ignored.front();
  }

  /// Applies attribute "reduction" to the losses of the rows that count; the others' loss is 0.
  template <class F>
  std::vector<Tensor> reduced(F loss) const {
    Tensor y(f64, shape);
    long double total = 0, weights = 0;
    for (int64_t row = 0; row < y.numel(); ++row) {
      at(y, row) = counts(row) ? loss(row) : 0;
      total += y.at(row);
      if (counts(row)) weights += soft() ? 1 : weight(label(row));
    }
    const std::string reduction = s.attrs.get_or<std::string>("reduction", "none");
    if (reduction == "none") return {y};
    if (reduction == "mean") total /= weights;
    return {Tensor::of<double>({}, {{static_cast<double>(total)}})};
  }

  const Sample& s;
  Extents shape;  ///< shape of the rows
  int64_t classes = 0, inner = 1;
  std::vector<int64_t> ignored;
};

std::vector<Tensor> nll(const Sample& s) {
  const Rows rows(s);
  return rows.reduced(
      [&](int64_t row) { return -rows.weight(rows.label(row)) * rows.x(row, rows.label(row)); });
}

std::vector<Tensor> cross_entropy(const Sample& s) {
  const Rows rows(s);
  const double smoothing = s.attrs.get_or("label_smoothing", 0.0);
  const double share = smoothing / static_cast<double>(rows.classes);
  return rows.reduced([&](int64_t row) {
    double largest = -INFINITY;
    for (int64_t k = 0; k < rows.classes; ++k) largest = std::max(largest, rows.x(row, k));
    long double total = 0, loss = 0;
    for (int64_t k = 0; k < rows.classes; ++k) total += std::exp(rows.x(row, k) - largest);
    for (int64_t k = 0; k < rows.classes; ++k) {
      const double hot = !rows.soft() && rows.label(row) == k ? 1 : 0;
      const double given = rows.soft() ? s.inputs[1].at(rows.position(row, k)) : hot;
      const double target = given * (1 - smoothing) + share;
      const long double own = std::log(total) + largest - rows.x(row, k);
      if (target != 0) loss += rows.weight(k) * target * own;
    }
    return static_cast<double>(loss);
  });
}

Attrs with(Attrs attrs, const std::string& reduction) {
  attrs.set("reduction", reduction);
  return attrs;
}

Attrs ignoring(int64_t label, Attrs attrs = {}) {
  attrs.set("ignore_index", std::vector<int64_t>{label});
  return attrs;
}

Sample hard(const Extents& x, const Tensor& label, bool weighted, Attrs attrs,
            std::vector<int> batch = {}, double range = 2) {
  Sample s{{random_tensor(x, -range, range), label}, std::move(attrs), std::move(batch)};
  const auto rank = static_cast<int64_t>(x.size());
  const int64_t axis = s.attrs.get_or<int64_t>("axis", -1);
  const int64_t classes = x[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  if (weighted) s.inputs.push_back(random_tensor({classes}, 0.25, 2, 3));
  return s;
}

/// Class indices; `attrs` are set in every sample.
std::vector<Sample> hard_samples(const Attrs& attrs) {
  Attrs channels = attrs;
  channels.set("axis", int64_t{1});
  std::vector<Sample> samples;
  for (const bool weighted : {false, true}) {
    for (const std::string reduction : {"none", "mean", "sum"}) {
      samples.push_back(hard({5, 7}, labels({5}, 7), weighted, with(attrs, reduction)));
      samples.push_back(
          hard({5, 4}, labels({5}, 4, i32), weighted, with(ignoring(2, attrs), reduction)));
      samples.push_back(
          hard({7, 3}, labels({7}, 3), weighted, with(ignoring(1, attrs), reduction), {0, 0}));
    }
    samples.push_back(hard({2, 3, 5}, labels({2, 5}, 3), weighted, with(channels, "mean")));
    samples.push_back(
        hard({2, 4, 3, 2}, labels({2, 3, 2}, 4, u8), weighted, ignoring(3, channels)));
    samples.push_back(hard({7, 3, 2}, labels({7, 2}, 3), weighted, with(channels, "sum"), {0, 0}));
    samples.push_back(hard({0, 3}, labels({0}, 3), weighted, with(attrs, "sum")));
    samples.push_back(hard({7, 1}, labels({7}, 1), weighted, with(attrs, "mean"), {0, 0}));
    samples.push_back(hard({1, 1}, labels({1}, 1), weighted, attrs));
    samples.push_back(hard({5}, labels({}, 5), weighted, attrs));
    samples.push_back(hard({3, 5}, labels({3}, 5), weighted, attrs, {}, 300));
  }
  return samples;
}

/// Labels outside the classes, which ignore_index excludes or not, and means over no rows.
std::vector<Sample> excluded_samples() {
  Tensor label = labels({5}, 3);
  for (const size_t i : {0, 3}) label.as<int64_t>()[i] = -100;
  Sample nan = hard({5, 3}, label, true, with(ignoring(-100), "mean"));
  at(nan.inputs[0], 1) = NAN;
  Tensor wrong = random_tensor({23}, -3, 9, 5);
  for (double& v : wrong.as<double>()) v = std::floor(v);
  return {nan,
          hard({5, 3}, label, false, ignoring(-100)),
          hard({23, 5}, wrong.cast(i64), true, ignoring(-2)),
          hard({23, 5}, wrong.cast(i32), false, with({}, "mean"), {0, 0}),
          hard({2, 3}, Tensor(i64, {2}), false, with(ignoring(0), "mean")),
          hard({0, 3}, labels({0}, 3), false, with({}, "mean")),
          hard({0, 3}, labels({0}, 3), true, with({}, "mean"))};
}

/// Mistakes that nll_loss and softmax_cross_entropy share; `also` names other operands in the
/// message about labels.
std::vector<BadUse> bad_uses(const std::string& op, const std::string& also) {
  const Type x = {f32, {2, 3}, {}}, label = {i64, {2}, {}};
  const std::string expects = op + ": expects integer labels [2]" + also + " for rows f32[2, 3], ";
  return {
      {{x, {i64, {3}, {}}}, {}, expects + "got i64[3]"},
      {{x, {f32, {2}, {}}}, {}, expects + "got f32[2]"},
      {{{i32, {2, 3}, {}}, label}, {}, op + ": expects a float tensor, got i32[2, 3]"},
      {{x, label}, {{"axis", int64_t{2}}}, op + ": there is no axis 2 in f32[2, 3]"},
      {{{f32, {kBatch, 3}, {}}, {i64, {3}, {}}},
       {{"axis", int64_t{0}}},
       op + ": axis 0 of the classes is the batch dimension of f32[?, 3]"},
      {{{f32, {2, 0}, {}}, label}, {}, op + ": rows of zero classes: f32[2, 0]"},
      {{x, label, {f32, {2}, {}}},
       {},
       op + ": weight must be f32[3], one number per class, got f32[2]"},
      {{x, label},
       {{"ignore_index", std::vector<int64_t>{1, 2}}},
       op + ": ignore_index must be one label or empty, not [1, 2]"},
      {{x, {u8, {2}, {}}},
       ignoring(-1),
       op + ": ignore_index must be representable in the labels' dtype u8 and in f64, not be -1"},
      {{x, label},
       ignoring(INT64_MAX),
       op + ": ignore_index must be representable in the labels' dtype i64 and in f64, not be "
            "9223372036854775807"},
      {{x, label},
       ignoring((int64_t{1} << 53) + 1),
       op + ": ignore_index must be representable in the labels' dtype i64 and in f64, not be "
            "9007199254740993"},
      {{x, label},
       with({}, "max"),
       op + ": reduction must be \"none\", \"mean\" or \"sum\", not \"max\""}};
}

OpTest nll_loss_test() {
  OpTest t;
  t.op = "nll_loss";
  t.samples = hard_samples({});
  t.reference = nll;
  t.slack = 4;
  t.bad = bad_uses("nll_loss", "");
  return t;
}

OpTest nll_loss_excluded_test() {
  OpTest t;
  t.op = "nll_loss";
  t.samples = excluded_samples();
  t.reference = nll;
  t.gradient = false;
  return t;
}

OpTest cross_entropy_test(const Attrs& attrs) {
  OpTest t;
  t.op = "softmax_cross_entropy";
  t.samples = hard_samples(attrs);
  t.reference = cross_entropy;
  t.slack = 8;
  return t;
}

OpTest cross_entropy_excluded_test() {
  OpTest t = cross_entropy_test({});
  t.samples = excluded_samples();
  Sample infinite = hard({3, 4}, Tensor(i64, {3}), false, {});
  at(infinite.inputs[0], 4) = -INFINITY;
  at(infinite.inputs[0], 9) = -INFINITY;
  t.samples.push_back(infinite);
  t.gradient = false;
  t.bad = bad_uses(t.op, " or probabilities f32[2, 3]");
  const Type x = {f32, {2, 3}, {}}, label = {i64, {2}, {}};
  t.bad.push_back({{x, label},
                   {{"label_smoothing", 1.5}},
                   t.op + ": attribute 'label_smoothing' must lie between 0 and 1, not be 1.5"});
  t.bad.push_back({{x, x},
                   ignoring(1),
                   t.op + ": ignore_index needs class indices, but the target holds probabilities "
                          "f32[2, 3]"});
  return t;
}

OpTest soft_labels_test() {
  OpTest t = cross_entropy_test({});
  t.samples.clear();
  const auto add = [&](const Extents& x, bool weighted, Attrs attrs, std::vector<int> batch = {}) {
    t.samples.push_back(
        hard(x, random_tensor(x, 0, 1, 7), weighted, std::move(attrs), std::move(batch)));
  };
  for (const bool weighted : {false, true}) {
    for (const double smoothing : {0.0, 0.3}) {
      const Attrs attrs = {{"label_smoothing", smoothing}};
      add({3, 5}, weighted, attrs);
      add({7, 4}, weighted, with(attrs, "mean"), {0, 0});
      Attrs channels = with(attrs, "sum");
      channels.set("axis", int64_t{1});
      add({2, 3, 5}, weighted, channels);
      channels.set("axis", int64_t{0});
      add({3, 2}, weighted, channels);
    }
    add({0, 3}, weighted, {});
    add({5, 1}, weighted, with({}, "mean"));
    add({3}, weighted, {});
  }
  return t;
}

const AddOpTest kNll(nll_loss_test());
const AddOpTest kNllExcluded(nll_loss_excluded_test());
const AddOpTest kCrossEntropy(cross_entropy_test({}));
const AddOpTest kSmoothed(cross_entropy_test({{"label_smoothing", 0.2}}));
const AddOpTest kCrossEntropyExcluded(cross_entropy_excluded_test());
const AddOpTest kSoftLabels(soft_labels_test());

}  // namespace
}  // namespace fluid::testing::class_loss_samples
