// Ops that read or write at indices from data, against loops over their definitions.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/ops/samples/lines.h"

namespace fluid::testing::index_samples {
namespace {

Tensor like(const Tensor& x) { return Tensor(f64, x.shape()); }

OpTest cumsum_test() {
  OpTest t;
  t.op = "cumsum";
  t.samples = {{{random_tensor({7})}, {}, {}},
               {{random_tensor({3, 5})}, {{"axis", int64_t{0}}}, {}},
               {{random_tensor({3, 5, 37})}, {{"axis", int64_t{1}}, {"reverse", true}}, {}},
               {{random_tensor({71, 5})}, {{"exclusive", true}}, {0}},
               {{random_tensor({3, 1, 2})},
                {{"axis", int64_t{-2}}, {"exclusive", true}, {"reverse", true}},
                {}},
               {{random_tensor({4, 0})}, {}, {}},
               {{random_tensor({0, 4})}, {}, {}}};
  t.reference = [](const Sample& s) {
    const Tensor& x = s.inputs[0];
    const Lines lines(x.shape(), s.attrs.get_or<int64_t>("axis", -1));
    const bool exclusive = s.attrs.get_or("exclusive", false);
    const bool reverse = s.attrs.get_or("reverse", false);
    Tensor y = like(x);
    lines.for_each([&](int64_t o, int64_t i) {
      for (int64_t at_t = 0; at_t < lines.extent; ++at_t) {
        double sum = 0;
        for (int64_t t = 0; t < lines.extent; ++t) {
          const bool before = reverse ? t > at_t : t < at_t;
          if (before || (t == at_t && !exclusive)) sum += x.at(lines.place(o, t, i));
        }
        at(y, lines.place(o, at_t, i)) = sum;
      }
    });
    return std::vector{y};
  };
  t.slack = 4;
  t.bad = {{{{boolean, {3}, {}}}, {}, "cumsum: the operand must be a numeric tensor, not bool[3]"},
           {{{f32, {kBatch}, {}}}, {}, "cumsum: axis 0 of f32[?] is the batch dimension"},
           {{{f32, {3}, {}}},
            {{"axis", int64_t{1}}},
            "cumsum: axis 1 is out of range for f32[3] of rank 1"}};
  return t;
}

OpTest sort_test() {
  OpTest t;
  t.op = "sort";
  Tensor special =
      Tensor::of<double>({7}, std::vector<double>{2, NAN, -1, INFINITY, 2, NAN, -INFINITY});
  Tensor ties = whole_tensor({4, 33}, 0, 5).cast(f64);
  for (const bool descending : {false, true}) {
    const Attrs order = {{"descending", descending}};
    t.samples.push_back({{special}, order, {}});
    t.samples.push_back({{ties}, order, {0}});
    t.samples.push_back(
        {{random_tensor({3, 13, 2})}, {{"axis", int64_t{1}}, {"descending", descending}}, {}});
    t.samples.push_back({{random_tensor({130})}, order, {}});
    t.samples.push_back({{random_tensor({3, 1})}, order, {}});
    t.samples.push_back({{random_tensor({3, 0})}, order, {}});
  }
  t.reference = [](const Sample& s) {
    const Tensor& x = s.inputs[0];
    const Lines lines(x.shape(), s.attrs.get_or<int64_t>("axis", -1));
    const bool descending = s.attrs.get_or("descending", false);
    Tensor value = like(x), index(i64, x.shape());
    lines.for_each([&](int64_t o, int64_t i) {
      std::vector<int64_t> order(static_cast<size_t>(lines.extent));
      std::iota(order.begin(), order.end(), 0);
      const auto rank = [&](int64_t t) {
        const double v = x.at(lines.place(o, t, i));
        return std::pair(std::isnan(v), std::isnan(v) ? 0 : v);
      };
      std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
        return descending ? rank(b) < rank(a) : rank(a) < rank(b);
      });
      for (int64_t t = 0; t < lines.extent; ++t) {
        const int64_t from = order[static_cast<size_t>(t)];
        at(value, lines.place(o, t, i)) = x.at(lines.place(o, from, i));
        index.as<int64_t>()[static_cast<size_t>(lines.place(o, t, i))] = from;
      }
    });
    return std::vector{value, index};
  };
  t.gradient = false;  // ties are kinks; sorting_gradient_test() has none
  t.bad = {{{{boolean, {3}, {}}}, {}, "sort: the operand must be a numeric tensor, not bool[3]"},
           {{{f32, {kBatch, 2}, {}}},
            {{"axis", int64_t{0}}},
            "sort: axis 0 of f32[?, 2] is the batch dimension"},
           {{{f32, {int64_t{1} << 31}, {}}}, {}, "sort: cannot sort more than 2^31 - 1 elements"}};
  return t;
}

/// Distinct elements, so that the order does not change within a finite difference.
OpTest sorting_gradient_test() {
  OpTest t = sort_test();
  t.samples = {{{random_tensor({3, 13, 2})}, {{"axis", int64_t{1}}}, {}},
               {{random_tensor({2, 7})}, {{"descending", true}}, {0}}};
  t.gradient = true;
  t.bad = {};
  return t;
}

OpTest gather_test() {
  OpTest t;
  t.op = "gather";
  t.samples = {{{random_tensor({5, 3}), whole_tensor({4}, 0, 5)}, {}, {}},
               {{random_tensor({5, 3}), whole_tensor({}, 0, 5, i32)}, {}, {}},
               {{random_tensor({5, 1}), whole_tensor({7, 2}, 0, 5, u8)}, {}, {-1, 0}},
               {{random_tensor({2, 7, 3}), whole_tensor({2, 3}, 0, 7)}, {{"axis", int64_t{1}}}, {}},
               {{random_tensor({3, 7}), whole_tensor({5}, 0, 7)}, {{"axis", int64_t{-1}}}, {0}},
               {{random_tensor({70, 37}), whole_tensor({130}, 0, 70)}, {}, {}},
               {{random_tensor({5, 3}), whole_tensor({0}, 0, 5)}, {}, {}}};
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &index = s.inputs[1];
    const int64_t given = s.attrs.get_or<int64_t>("axis", 0);
    const auto axis = given < 0 ? given + std::ssize(x.shape()) : given;
    const Lines lines(x.shape(), axis);
    Extents shape(x.shape().begin(), x.shape().begin() + axis);
    shape.insert(shape.end(), index.shape().begin(), index.shape().end());
    shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
    Tensor y(f64, shape);
    lines.for_each([&](int64_t o, int64_t i) {
      for (int64_t n = 0; n < index.numel(); ++n) {
        const auto row =
            std::clamp<int64_t>(static_cast<int64_t>(index.at(n)), 0, lines.extent - 1);
        at(y, (o * index.numel() + n) * lines.inner + i) = x.at(lines.place(o, row, i));
      }
    });
    return std::vector{y};
  };
  t.bad = {{{{f32, {3}, {}}, {f32, {2}, {}}},
            {},
            "gather: the index must be an integer tensor, not f32[2]"},
           {{{f32, {0, 2}, {}}, {i64, {2}, {}}}, {}, "gather: axis 0 of f32[0, 2] is empty"},
           {{{f32, {kBatch, 2}, {}}, {i64, {kBatch}, {}}},
            {{"axis", int64_t{1}}},
            "gather: f32[?, 2] and index i64[?] both have the batch dimension"}};
  return t;
}

OpTest gather_outside_test() {
  OpTest t = gather_test();
  t.samples = {{{random_tensor({5, 3}), whole_tensor({11}, -3, 9)}, {}, {}}};
  t.gradient = false;  // an index out of range adds nothing to it
  t.bad = {};
  return t;
}

OpTest gather_grad_test() {
  OpTest t;
  t.op = "gather_grad";
  const auto sample = [&](Extents dy, Tensor index, const Extents& input, int64_t axis,
                          std::vector<int> batch) {
    t.samples.push_back(
        {{random_tensor(std::move(dy)), std::move(index)},
         {{"input", Type{f64, Shape(input.begin(), input.end()), {}}}, {"axis", axis}},
         std::move(batch)});
  };
  sample({4, 3}, whole_tensor({4}, 0, 5), {5, 3}, 0, {});
  sample({4, 5, 1}, whole_tensor({4, 5}, 0, 7), {7, 1}, 0, {0, 0});
  sample({2, 6, 17}, whole_tensor({6}, 0, 3, i32), {2, 3, 17}, 1, {});
  sample({130, 37}, whole_tensor({130}, 0, 70), {70, 37}, 0, {0, 0});
  sample({0, 3}, whole_tensor({0}, 0, 5), {5, 3}, 0, {});
  sample({9, 2}, whole_tensor({9}, -2, 6), {3, 2}, 0, {});
  t.reference = [](const Sample& s) {
    const Type input = s.attrs.get<Type>("input");
    Extents shape;
    for (const Dim& d : input.shape) shape.push_back(d.size);
    const Lines lines(shape, s.attrs.get<int64_t>("axis"));
    const Tensor& index = s.inputs[1];
    Tensor y(f64, shape);
    lines.for_each([&](int64_t o, int64_t i) {
      for (int64_t n = 0; n < index.numel(); ++n) {
        const auto row = static_cast<int64_t>(index.at(n));
        if (row < 0 || row >= lines.extent) continue;
        at(y, lines.place(o, row, i)) += s.inputs[0].at((o * index.numel() + n) * lines.inner + i);
      }
    });
    return std::vector{y};
  };
  t.slack = 4;
  t.gradient = false;  // the gradient's gradient is gather, which clamps indices out of range
  t.bad = {{{{f32, {2}, {}}, {i64, {3}, {}}},
            {{"input", Type{f32, {5}, {}}}},
            "gather_grad: expects dy f32[3], got f32[2]"}};
  return t;
}

/// Calls visit(e, p) for each element e of `index`, where p is the element of a tensor of shape `x`
/// that it addresses along `axis`.
void for_each_index(const Extents& x, const Tensor& index, int64_t axis,
                    const std::function<void(int64_t e, int64_t p)>& visit) {
  const auto rank = std::ssize(x), along = axis < 0 ? axis + rank : axis;
  for (int64_t e = 0; e < index.numel(); ++e) {
    int64_t rest = e, place = 0, stride = 1;
    for (int64_t d = rank - 1; d >= 0; --d) {
      const int64_t extent = x[static_cast<size_t>(d)];
      const int64_t given = index.shape()[static_cast<size_t>(d)];
      const auto taken = std::clamp<int64_t>(static_cast<int64_t>(index.at(e)), 0, extent - 1);
      place += (d == along ? taken : rest % given) * stride;
      rest /= given;
      stride *= extent;
    }
    visit(e, place);
  }
}

std::vector<Tensor> taken(const Sample& s) {
  const Tensor &x = s.inputs[0], &index = s.inputs[1];
  Tensor y(f64, index.shape());
  for_each_index(x.shape(), index, s.attrs.get_or<int64_t>("axis", -1),
                 [&](int64_t e, int64_t p) { at(y, e) = x.at(p); });
  return {y};
}

OpTest take_along_axis_test() {
  OpTest t;
  t.op = "take_along_axis";
  t.samples = {
      {{random_tensor({3, 5}), whole_tensor({3, 1}, 0, 5)}, {}, {}},
      {{random_tensor({3, 5}), whole_tensor({3, 7}, 0, 5, i32)}, {}, {0, 0}},
      {{random_tensor({4, 3, 17}), whole_tensor({4, 2, 17}, 0, 3, u8)}, {{"axis", int64_t{1}}}, {}},
      {{random_tensor({5}), whole_tensor({4}, 0, 5)}, {}, {}},
      {{random_tensor({3, 5}), whole_tensor({3, 0}, 0, 5)}, {}, {}},
      {{random_tensor({71, 5}), whole_tensor({71, 2}, 0, 5)}, {}, {0, 0}},
      {{random_tensor({3, 5}), whole_tensor({2, 1}, 0, 5)}, {}, {}},  // of some rows of x
      {{random_tensor({7, 3, 5, 2}), whole_tensor({7, 2, 3, 1}, 0, 5)},
       {{"axis", int64_t{2}}},
       {0, 0}},
      {{random_tensor({4, 17}), whole_tensor({6, 13}, 0, 4)}, {{"axis", int64_t{0}}}, {}},
      {{random_tensor({3, 5}), whole_tensor({0, 2}, 0, 5)}, {}, {}}};
  t.reference = taken;
  t.bad = {{{{f32, {3, 2}, {}}, {f32, {3, 1}, {}}},
            {},
            "take_along_axis: the index must be an integer tensor, not f32[3, 1]"},
           {{{f32, {3, 2}, {}}, {i64, {4, 1}, {}}},
            {},
            "take_along_axis: index i64[4, 1] does not fit into f32[3, 2] besides axis 1"},
           {{{f32, {kBatch, 2}, {}}, {i64, {1, 1}, {}}},
            {},
            "take_along_axis: index i64[1, 1] does not fit into f32[?, 2] besides axis 1"},
           {{{f32, {3, 0}, {}}, {i64, {3, 1}, {}}},
            {},
            "take_along_axis: axis 1 of f32[3, 0] is empty"}};
  return t;
}

/// Indices of which some are out of range; their gradient is that of an index in range.
OpTest take_outside_test() {
  OpTest t = take_along_axis_test();
  t.samples = {{{random_tensor({23, 5}), whole_tensor({23, 1}, -3, 9)}, {}, {}},
               {{random_tensor({23, 5}), whole_tensor({23, 2}, -3, 9, i32)}, {}, {0, 0}}};
  t.gradient = false;
  t.bad = {};
  return t;
}

std::vector<Tensor> scattered(const Sample& s, const Tensor& initial, const Tensor& index,
                              const Tensor& updates, const std::string& reduce, int64_t axis) {
  Tensor y = initial.copy();
  for_each_index(y.shape(), index, axis, [&](int64_t e, int64_t p) {
    double& element = at(y, p);
    const double u = updates.at(e);
    element = reduce == "add"   ? element + u
              : reduce == "mul" ? element * u
              : reduce == "max" ? std::max(element, u)
              : reduce == "min" ? std::min(element, u)
                                : u;
  });
  static_cast<void>(s);
  return {y};
}

OpTest scatter_test(const std::vector<std::string>& reductions, bool gradient) {
  OpTest t;
  t.op = "scatter";
  for (const std::string& reduce : reductions) {
    const auto sample = [&](Extents x, Tensor index, int64_t axis, std::vector<int> batch) {
      const Tensor updates = random_tensor(index.shape(), -2, 2, 3);
      t.samples.push_back({{random_tensor(std::move(x)), index, updates},
                           {{"axis", axis}, {"reduce", reduce}},
                           std::move(batch)});
    };
    // Distinct indices within a line, where the last of equal ones would have no gradient.
    sample({5}, Tensor::of<int64_t>({3}, std::vector<int64_t>{4, 0, 2}), 0, {});
    if (!gradient || reduce != "none") {
      sample({3, 5}, whole_tensor({3, 7}, 0, 5, i32), 1, {0, 0, 0});
      sample({3, 5}, whole_tensor({3, 0}, 0, 5), -1, {});
      sample({3, 5, 2, 3}, whole_tensor({3, 7, 1, 2}, 0, 5), 1, {0, 0, 0});  // of a part of x
    }
    sample({4, 3}, Tensor::of<int64_t>({2, 1}, std::vector<int64_t>{3, 1}), 0, {});
    if (!gradient || reduce == "add") {
      sample({4, 3, 17}, whole_tensor({4, 2, 17}, 0, 3, u8), 1, {});
      sample({4, 3, 17}, whole_tensor({2, 2, 11}, 0, 3), 1, {});
    }
    if (reduce == "mul") {  // no, one and two factors are 0
      t.samples.push_back({{Tensor::of<double>({4}, std::vector<double>{2, 0, 0, 3}),
                            Tensor::of<int64_t>({4}, std::vector<int64_t>{0, 1, 2, 3}),
                            Tensor::of<double>({4}, std::vector<double>{-1, 2, 0, 0})},
                           {{"axis", int64_t{0}}, {"reduce", reduce}},
                           {}});
    }
  }
  t.reference = [](const Sample& s) {
    return scattered(s, s.inputs[0], s.inputs[1], s.inputs[2], s.attrs.get<std::string>("reduce"),
                     s.attrs.get<int64_t>("axis"));
  };
  t.gradient = gradient;
  t.slack = 4;
  return t;
}

OpTest scatter_errors_test() {
  OpTest t = scatter_test({"none", "mul", "max", "min"}, false);
  const Type x = {f32, {3, 2}, {}};
  t.bad = {{{x, {i64, {3, 2}, {}}, x},
            {{"reduce", std::string("mean")}},
            R"(scatter: reduce must be "none", "add", "mul", "max" or "min", not "mean")"},
           {{x, {i64, {4, 3}, {}}, x},
            {},
            "scatter: index i64[4, 3] does not fit into f32[3, 2] besides axis 0"},
           {{{f32, {0, 2}, {}}, {i64, {1, 2}, {}}, {f32, {1, 2}, {}}},
            {},
            "scatter: axis 0 of f32[0, 2] is empty"},
           {{x, {i64, {4, 2}, {}}, x},
            {},
            "scatter: expects updates f32[4, 2], one per index, got f32[3, 2]"}};
  return t;
}

OpTest scatter_add_test() {
  OpTest t;
  t.op = "scatter_add";
  const auto sample = [&](const Extents& to, Tensor index, int64_t axis, std::vector<int> batch) {
    const Tensor updates = random_tensor(index.shape(), -2, 2, 3);
    Type type{f64, Shape(to.begin(), to.end()), {}};
    if (!batch.empty()) type.shape[0] = kBatch;
    t.samples.push_back(
        {{updates, std::move(index)}, {{"to", type}, {"axis", axis}}, std::move(batch)});
  };
  sample({5}, whole_tensor({9}, 0, 5), 0, {});
  sample({3, 5}, whole_tensor({3, 7}, 0, 5, i32), 1, {0, 0});
  sample({4, 3, 17}, whole_tensor({4, 2, 17}, 0, 3), 1, {});
  sample({4, 3, 17}, whole_tensor({2, 2, 11}, 0, 3), 1, {});
  sample({70, 2}, whole_tensor({70, 3}, 0, 2), -1, {});
  t.reference = [](const Sample& s) {
    Extents shape = s.inputs[0].shape();
    const Shape& to = s.attrs.get<Type>("to").shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!to[d].batch) shape[d] = to[d].size;
    }
    return scattered(s, Tensor(f64, shape), s.inputs[1], s.inputs[0], "add",
                     s.attrs.get<int64_t>("axis"));
  };
  t.slack = 4;
  return t;
}

const AddOpTest kCumsum(cumsum_test());
const AddOpTest kSort(sort_test());
const AddOpTest kSortGradient(sorting_gradient_test());
const AddOpTest kGather(gather_test());
const AddOpTest kGatherOutside(gather_outside_test());
const AddOpTest kGatherGrad(gather_grad_test());
const AddOpTest kTakeAlongAxis(take_along_axis_test());
const AddOpTest kTakeOutside(take_outside_test());
const AddOpTest kScatter(scatter_test({"none", "add", "mul", "max", "min"}, true));
const AddOpTest kScatterOthers(scatter_errors_test());
const AddOpTest kScatterAdd(scatter_add_test());

}  // namespace
}  // namespace fluid::testing::index_samples
