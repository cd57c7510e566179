// Cumulative products, and ops that sort, against loops over their definitions.

#include <algorithm>
#include <numeric>

#include "tests/ops/samples/lines.h"

namespace fluid::testing::cumulative_samples {
namespace {

/// Elements that are 0 or small whole numbers.
Tensor with_zeros(Extents shape) { return whole_tensor(std::move(shape), -1, 3).cast(f64); }

/// The positions along the axis whose product is element `t` of the result.
std::vector<int64_t> factors(const Attrs& attrs, int64_t extent, int64_t t) {
  const bool exclusive = attrs.get_or("exclusive", false), reverse = attrs.get_or("reverse", false);
  std::vector<int64_t> all;
  for (int64_t f = 0; f < extent; ++f) {
    if ((reverse ? f > t : f < t) || (f == t && !exclusive)) all.push_back(f);
  }
  return all;
}

std::vector<Sample> cumulative_samples() {
  std::vector<Sample> samples = {{{random_tensor({7})}, {}, {}},
                                 {{with_zeros({3, 5})}, {{"axis", int64_t{0}}}, {}},
                                 {{with_zeros({7, 5})}, {{"exclusive", true}}, {0}},
                                 {{with_zeros({3, 2, 17})}, {{"axis", int64_t{1}}}, {}},
                                 {{random_tensor({3, 1, 2})}, {{"reverse", true}}, {}},
                                 {{with_zeros({2, 5})}, {{"reverse", true}}, {}},
                                 {{with_zeros({2, 5, 2})},
                                  {{"axis", int64_t{-2}}, {"exclusive", true}, {"reverse", true}},
                                  {}},
                                 {{random_tensor({4, 0})}, {}, {}},
                                 {{random_tensor({0, 4})}, {}, {}}};
  return samples;
}

OpTest cumprod_test() {
  OpTest t;
  t.op = "cumprod";
  t.samples = cumulative_samples();
  t.reference = [](const Sample& s) {
    const Tensor& x = s.inputs[0];
    const Lines lines(x.shape(), s.attrs.get_or<int64_t>("axis", -1));
    Tensor y(f64, x.shape());
    lines.for_each([&](int64_t o, int64_t i) {
      for (int64_t to = 0; to < lines.extent; ++to) {
        double product = 1;
        for (const int64_t f : factors(s.attrs, lines.extent, to)) {
          product *= x.at(lines.place(o, f, i));
        }
        at(y, lines.place(o, to, i)) = product;
      }
    });
    return std::vector{y};
  };
  t.slack = 4;
  t.bad = {{{{boolean, {3}, {}}}, {}, "cumprod: the operand must be a numeric tensor, not bool[3]"},
           {{{f32, {kBatch}, {}}}, {}, "cumprod: axis 0 of f32[?] is the batch dimension"}};
  return t;
}

OpTest cumprod_grad_test() {
  OpTest t;
  t.op = "cumprod_grad";
  for (Sample s : cumulative_samples()) {
    s.inputs.insert(s.inputs.begin(), random_tensor(s.inputs[0].shape(), -2, 2, 5));
    if (!s.batch_dims.empty()) s.batch_dims = {0, 0};
    t.samples.push_back(s);
  }
  t.reference = [](const Sample& s) {
    const Tensor &dy = s.inputs[0], &x = s.inputs[1];
    const Lines lines(x.shape(), s.attrs.get_or<int64_t>("axis", -1));
    Tensor dx(f64, x.shape());
    lines.for_each([&](int64_t o, int64_t i) {
      for (int64_t to = 0; to < lines.extent; ++to) {
        const std::vector<int64_t> all = factors(s.attrs, lines.extent, to);
        for (const int64_t own : all) {
          double others = dy.at(lines.place(o, to, i));
          for (const int64_t f : all) others *= f == own ? 1 : x.at(lines.place(o, f, i));
          at(dx, lines.place(o, own, i)) += others;
        }
      }
    });
    return std::vector{dx};
  };
  t.slack = 16;
  t.bad = {{{{f32, {3}, {}}, {f32, {4}, {}}},
            {},
            "cumprod_grad: the gradient f32[3] does not fit to f32[4]"}};
  return t;
}

OpTest linear_recurrence_test() {
  OpTest t;
  t.op = "linear_recurrence";
  const auto sample = [&](const Extents& shape, Attrs attrs, std::vector<int> batch) {
    t.samples.push_back({{random_tensor(shape), random_tensor(shape, -2, 2, 5)},
                         std::move(attrs),
                         std::move(batch)});
  };
  sample({7}, {}, {});
  sample({3, 5}, {{"axis", int64_t{0}}, {"reverse", true}}, {});
  sample({7, 5}, {}, {0, 0});
  sample({3, 2, 17}, {{"axis", int64_t{1}}}, {});
  sample({2, 1}, {{"reverse", true}}, {});
  sample({4, 0}, {}, {});
  sample({0, 4}, {}, {});
  t.reference = [](const Sample& s) {
    const Tensor &a = s.inputs[0], &x = s.inputs[1];
    const Lines lines(x.shape(), s.attrs.get_or<int64_t>("axis", -1));
    Tensor y(f64, x.shape());
    lines.for_each([&](int64_t o, int64_t i) {
      double before = 0;
      for (int64_t step = 0; step < lines.extent; ++step) {
        const bool reverse = s.attrs.get_or("reverse", false);
        const int64_t p = lines.place(o, reverse ? lines.extent - 1 - step : step, i);
        before = at(y, p) = a.at(p) + x.at(p) * before;
      }
    });
    return std::vector{y};
  };
  t.slack = 16;
  t.bad = {{{{f32, {3}, {}}, {f32, {4}, {}}},
            {},
            "linear_recurrence: operands f32[3] and f32[4] differ"},
           {{{f32, {kBatch}, {}}, {f32, {kBatch}, {}}},
            {},
            "linear_recurrence: axis 0 of f32[?] is the batch dimension"}};
  return t;
}

/// Positions along the axis in the order of their elements; NaN counts as the largest.
std::vector<int64_t> sorted_positions(const Tensor& x, const Lines& lines, int64_t o, int64_t i,
                                      bool descending) {
  std::vector<int64_t> order(static_cast<size_t>(lines.extent));
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](int64_t t) {
    const double v = x.at(lines.place(o, t, i));
    return std::pair(std::isnan(v), std::isnan(v) ? 0 : v);
  };
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return descending ? rank(b) < rank(a) : rank(a) < rank(b);
  });
  return order;
}

OpTest argsort_test() {
  OpTest t;
  t.op = "argsort";
  for (const bool descending : {false, true}) {
    const Attrs order = {{"descending", descending}};
    t.samples.push_back({{whole_tensor({4, 33}, 0, 5).cast(f64)}, order, {0}});
    t.samples.push_back(
        {{random_tensor({3, 13, 2})}, {{"axis", int64_t{1}}, {"descending", descending}}, {}});
    t.samples.push_back({{random_tensor({3, 0})}, order, {}});
  }
  t.reference = [](const Sample& s) {
    const Tensor& x = s.inputs[0];
    const Lines lines(x.shape(), s.attrs.get_or<int64_t>("axis", -1));
    Tensor index(i64, x.shape());
    lines.for_each([&](int64_t o, int64_t i) {
      const auto order = sorted_positions(x, lines, o, i, s.attrs.get_or("descending", false));
      for (int64_t t = 0; t < lines.extent; ++t) {
        index.as<int64_t>()[static_cast<size_t>(lines.place(o, t, i))] =
            order[static_cast<size_t>(t)];
      }
    });
    return std::vector{index};
  };
  t.bad = {
      {{{boolean, {3}, {}}}, {}, "argsort: the operand must be a numeric tensor, not bool[3]"}};
  return t;
}

/// The first `k` elements of each line in sorted order, or in the order of x.
std::vector<Tensor> first_elements(const Sample& s, bool descending, bool in_order) {
  const Tensor& x = s.inputs[0];
  const auto axis = s.attrs.get<int64_t>("axis"), k = s.attrs.get<int64_t>("k");
  const Lines lines(x.shape(), axis);
  Extents shape = x.shape();
  shape[static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis)] = k;
  const Lines taken(shape, axis);
  Tensor value(f64, shape), index(i64, shape);
  lines.for_each([&](int64_t o, int64_t i) {
    std::vector<int64_t> order = sorted_positions(x, lines, o, i, descending);
    order.resize(static_cast<size_t>(k));
    if (!in_order) std::ranges::sort(order);
    for (int64_t t = 0; t < k; ++t) {
      const int64_t from = order[static_cast<size_t>(t)];
      at(value, taken.place(o, t, i)) = x.at(lines.place(o, from, i));
      index.as<int64_t>()[static_cast<size_t>(taken.place(o, t, i))] = from;
    }
  });
  return {value, index};
}

OpTest partial_sort_test() {
  OpTest t;
  t.op = "partial_sort";
  const auto sample = [&](Tensor x, int64_t k, int64_t axis, bool descending,
                          std::vector<int> batch = {}) {
    t.samples.push_back(
        {{std::move(x)}, {{"k", k}, {"axis", axis}, {"descending", descending}}, std::move(batch)});
  };
  for (const bool descending : {false, true}) {
    sample(Tensor::of<double>({7}, std::vector<double>{2, NAN, -1, INFINITY, 2, NAN, -INFINITY}), 3,
           0, descending);
    sample(whole_tensor({4, 37}, 0, 5).cast(f64), 5, -1, descending, {0});
  }
  sample(whole_tensor({2, 19, 3}, 0, 4).cast(f64), 7, 1, true);
  sample(random_tensor({3, 5, 2}), 5, 1, false);
  sample(random_tensor({2, 11}), 1, 1, true);
  sample(random_tensor({3, 1}), 1, 1, false);
  sample(random_tensor({3, 2}), 0, 1, true);
  sample(random_tensor({0, 2}), 1, 1, false);
  t.reference = [](const Sample& s) {
    return first_elements(s, s.attrs.get<bool>("descending"), true);
  };
  t.gradient = false;  // ties are kinks; topk_gradient_test() has none
  t.bad = {{{{boolean, {3}, {}}},
            {{"k", int64_t{1}}},
            "partial_sort: the operand must be a numeric tensor, not bool[3]"}};
  return t;
}

OpTest topk_test() {
  OpTest t;
  t.op = "topk";
  for (const bool largest : {false, true}) {
    for (const bool sorted : {false, true}) {
      const auto sample = [&](Tensor x, int64_t k, int64_t axis, std::vector<int> batch) {
        t.samples.push_back({{std::move(x)},
                             {{"k", k}, {"axis", axis}, {"largest", largest}, {"sorted", sorted}},
                             std::move(batch)});
      };
      sample(whole_tensor({4, 13}, 0, 5).cast(f64), 5, -1, {0});
      if (sorted == largest) continue;
      sample(random_tensor({3, 2}), 0, 1, {});
      sample(random_tensor({0, 2}), 1, 1, {});
    }
  }
  t.reference = [](const Sample& s) {
    return first_elements(s, s.attrs.get<bool>("largest"), s.attrs.get<bool>("sorted"));
  };
  t.gradient = false;  // ties are kinks; topk_gradient_test() has none
  t.bad = {{{{boolean, {3}, {}}},
            {{"k", int64_t{1}}},
            "topk: the operand must be a numeric tensor, not bool[3]"},
           {{{f32, {3, 2}, {}}},
            {{"k", int64_t{3}}},
            "topk: k = 3 is not in [0, 2], the extent of axis 1 of f32[3, 2]"}};
  return t;
}

/// Distinct elements, so that the order does not change within a finite difference.
OpTest topk_gradient_test() {
  OpTest t = topk_test();
  t.samples = {{{random_tensor({3, 5, 2})}, {{"k", int64_t{2}}, {"axis", int64_t{1}}}, {}},
               {{random_tensor({2, 5})},
                {{"k", int64_t{3}}, {"axis", int64_t{-1}}, {"sorted", false}},
                {0}}};
  for (Sample& s : t.samples) {
    for (const char* name : {"largest", "sorted"}) {
      if (!s.attrs.has(name)) s.attrs.set(name, true);
    }
  }
  t.gradient = true;
  t.bad = {};
  return t;
}

OpTest stop_gradient_test() {
  OpTest t = unary_test("stop_gradient", [](double x) { return x; });
  t.gradient = false;  // 0, not the finite difference
  return t;
}

const AddOpTest kCumprod(cumprod_test());
const AddOpTest kCumprodGrad(cumprod_grad_test());
const AddOpTest kLinearRecurrence(linear_recurrence_test());
const AddOpTest kArgsort(argsort_test());
OpTest partial_sort_gradient_test() {
  OpTest t = partial_sort_test();
  t.samples = {{{random_tensor({2, 7})},
                {{"k", int64_t{3}}, {"axis", int64_t{1}}, {"descending", true}},
                {}}};
  t.gradient = true;
  t.bad = {};
  return t;
}

const AddOpTest kPartialSort(partial_sort_test());
const AddOpTest kPartialSortGradient(partial_sort_gradient_test());
const AddOpTest kTopk(topk_test());
const AddOpTest kTopkGradient(topk_gradient_test());
const AddOpTest kStopGradient(stop_gradient_test());

}  // namespace
}  // namespace fluid::testing::cumulative_samples
