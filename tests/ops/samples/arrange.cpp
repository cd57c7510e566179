// Ops that repeat, join, split and reorder elements, insert and remove dimensions, or mask.

#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::arrange_samples {
namespace {

constexpr auto kFloats = [](Shape shape) { return Type{f32, std::move(shape), {}}; };

Attrs axes_attr(Extents axes) { return {{"axes", axes}}; }

size_t place(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

OpTest tile_test() {
  OpTest t;
  t.op = "tile";
  const auto repeats = [](Extents list) { return Attrs{{"repeats", list}}; };
  t.samples = {{{random_tensor({3, 5})}, repeats({2, 3}), {}},
               {{random_tensor({3, 5})}, repeats({3}), {}},
               {{random_tensor({5})}, repeats({2, 1, 3}), {}},
               {{random_tensor({})}, repeats({}), {}},
               {{random_tensor({})}, repeats({7}), {}},
               {{random_tensor({1})}, repeats({37}), {}},
               {{random_tensor({3})}, repeats({0}), {}},
               {{random_tensor({0, 3})}, repeats({2, 2}), {}},
               {{random_tensor({3, 5})}, repeats({1, 1}), {}},
               {{random_tensor({7, 3})}, repeats({1, 2}), {0}},
               {{bool_tensor({5})}, repeats({2}), {}}};
  t.reference = [](const Sample& s) {
    const Extents& from = s.inputs[0].shape();
    Extents factors = s.attrs.get<Extents>("repeats"), shape = from;
    const size_t rank = std::max(factors.size(), from.size());
    factors.insert(factors.begin(), rank - factors.size(), 1);
    shape.insert(shape.begin(), rank - from.size(), 1);
    for (size_t d = 0; d < rank; ++d) shape[d] *= factors[d];
    Tensor y = gathered(s.inputs[0], shape, [&](const Extents& index) {
      Extents at;
      for (size_t d = 0; d < from.size(); ++d)
        at.push_back(index[rank - from.size() + d] % from[d]);
      return at;
    });
    return std::vector{s.inputs[0].dtype() == f64 ? y : y.cast(s.inputs[0].dtype())};
  };
  t.bad = {{{kFloats({3})}, repeats({-1}), "tile: repeats must not be negative, but are [-1]"},
           {{kFloats({kBatch, 3})},
            repeats({2, 1}),
            "tile: the batch dimension of f32[?, 3] cannot be repeated"},
           {{kFloats({int64_t{1} << 40})},
            repeats({int64_t{1} << 40}),
            "tile: dimension 0 of the result grows too large"}};
  return t;
}

OpTest stack_test() {
  OpTest t;
  t.op = "stack";
  const auto axis = [](int64_t a) { return Attrs{{"axis", a}}; };
  const auto samples = [](Extents shape, int count) {
    std::vector<Tensor> xs;
    for (int i = 0; i < count; ++i) xs.push_back(random_tensor(shape, -2, 2, i));
    return xs;
  };
  t.samples = {{samples({3, 5}, 2), {}, {}},          {samples({3, 5}, 3), axis(1), {}},
               {samples({3, 5}, 2), axis(-1), {}},    {samples({}, 7), {}, {}},
               {samples({1}, 1), axis(1), {}},        {samples({0, 3}, 2), axis(-2), {}},
               {samples({7, 3}, 2), axis(1), {0, 0}}, {samples({7}, 2), {}, {0, 0}}};
  t.reference = [](const Sample& s) {
    Extents shape = s.inputs[0].shape();
    const size_t axis = place(s.attrs.get_or<int64_t>("axis", 0), shape.size() + 1);
    const int64_t inner =
        numel_of(Extents(shape.begin() + static_cast<ptrdiff_t>(axis), shape.end()));
    const auto count = static_cast<int64_t>(s.inputs.size());
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), count);
    Tensor y(f64, shape);
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t operand = i / inner % count;
      at(y, i) = s.inputs[static_cast<size_t>(operand)].at(i / inner / count * inner + i % inner);
    }
    return std::vector{y};
  };
  t.bad = {{{kFloats({2}), kFloats({3})}, {}, "stack: operands f32[2] and f32[3] differ"},
           {{kFloats({2}), {f64, {2}, {}}}, {}, "stack: operands f32[2] and f64[2] differ"},
           {{kFloats({2})}, axis(2), "stack: axis 2 is out of range for a result of rank 2"},
           {{}, {}, "stack: takes operands (xs...), not 0"}};
  return t;
}

OpTest split_test() {
  OpTest t;
  t.op = "split";
  const auto attrs = [](Extents sizes, int64_t axis) {
    return Attrs{{"sizes", sizes}, {"axis", axis}};
  };
  t.samples = {{{random_tensor({7})}, {{"sizes", Extents{3, 4}}}, {}},
               {{random_tensor({3, 8})}, attrs({3, 3, 2}, 1), {}},
               {{random_tensor({2, 5, 3})}, attrs({1, 0, 4}, -2), {}},
               {{random_tensor({5})}, attrs({5}, 0), {}},
               {{random_tensor({0, 4})}, attrs({2, 2}, 1), {}},
               {{random_tensor({0})}, attrs({0, 0}, 0), {}},
               {{random_tensor({7, 4})}, attrs({1, 3}, 1), {0}}};
  t.reference = [](const Sample& s) {
    const Tensor& x = s.inputs[0];
    const size_t axis = place(s.attrs.get_or<int64_t>("axis", 0), x.shape().size());
    std::vector<Tensor> parts;
    int64_t begin = 0;
    for (const int64_t size : s.attrs.get<Extents>("sizes")) {
      Extents shape = x.shape();
      shape[axis] = size;
      parts.push_back(gathered(x, shape, [&](Extents index) {
        index[axis] += begin;
        return index;
      }));
      begin += size;
    }
    return parts;
  };
  t.bad = {
      {{kFloats({5})}, attrs({}, 0), "split: attribute 'sizes' is empty"},
      {{kFloats({5})}, attrs({6, -1}, 0), "split: sizes must not be negative, but are [6, -1]"},
      {{kFloats({3, 5})},
       attrs({2, 2}, 1),
       "split: the sizes add up to 4, not to 5, the extent of axis 1 of f32[3, 5]"},
      {{kFloats({kBatch})}, attrs({1}, 0), "split: axis 0 of f32[?] is the batch dimension"},
      {{kFloats({5})}, attrs({5}, 1), "split: axis 1 is out of range for f32[5] of rank 1"}};
  return t;
}

OpTest flip_test() {
  OpTest t;
  t.op = "flip";
  t.samples = {{{random_tensor({3, 5})}, axes_attr({0}), {}},
               {{random_tensor({3, 5})}, axes_attr({-1, 0}), {}},
               {{random_tensor({37})}, axes_attr({0}), {}},
               {{random_tensor({3})}, axes_attr({}), {}},
               {{random_tensor({})}, axes_attr({}), {}},
               {{random_tensor({1})}, axes_attr({0}), {}},
               {{random_tensor({0, 3})}, axes_attr({0, 1}), {}},
               {{random_tensor({7, 3})}, axes_attr({1}), {0}}};
  t.reference = [](const Sample& s) {
    const Extents& shape = s.inputs[0].shape();
    return std::vector{gathered(s.inputs[0], shape, [&](Extents index) {
      for (const int64_t axis : s.attrs.get<Extents>("axes")) {
        const size_t d = place(axis, shape.size());
        index[d] = shape[d] - 1 - index[d];
      }
      return index;
    })};
  };
  t.bad = {{{kFloats({3})}, axes_attr({1}), "flip: axis 1 is out of range for f32[3] of rank 1"},
           {{kFloats({3})}, axes_attr({0, -1}), "flip: axis 0 is given twice"},
           {{kFloats({kBatch, 3})},
            axes_attr({0}),
            "flip: the batch dimension of f32[?, 3] cannot be flipped"}};
  return t;
}

OpTest roll_test() {
  OpTest t;
  t.op = "roll";
  const auto attrs = [](Extents shifts, Extents axes) {
    return Attrs{{"shifts", shifts}, {"axes", axes}};
  };
  t.samples = {{{random_tensor({7})}, attrs({2}, {0}), {}},
               {{random_tensor({7})}, attrs({-16}, {-1}), {}},
               {{random_tensor({7})}, attrs({INT64_MIN}, {0}), {}},
               {{random_tensor({3, 5})}, attrs({1, -2}, {0, 1}), {}},
               {{random_tensor({3, 5})}, attrs({1, INT64_MAX, 4}, {1, 1, 1}), {}},
               {{random_tensor({3, 5})}, attrs({3, 0}, {0, 1}), {}},
               {{random_tensor({})}, attrs({}, {}), {}},
               {{random_tensor({0, 3})}, attrs({1, 1}, {0, 1}), {}},
               {{random_tensor({7, 3})}, attrs({1}, {1}), {0}}};
  t.reference = [](const Sample& s) {
    const Extents& shape = s.inputs[0].shape();
    return std::vector{gathered(s.inputs[0], shape, [&](Extents index) {
      const Extents axes = s.attrs.get<Extents>("axes");
      for (size_t i = 0; i < axes.size(); ++i) {
        const size_t d = place(axes[i], shape.size());
        const int64_t shift = s.attrs.get<Extents>("shifts")[i] % shape[d];
        index[d] = (index[d] - shift + 2 * shape[d]) % shape[d];
      }
      return index;
    })};
  };
  t.bad = {{{kFloats({3})},
            attrs({1, 2}, {0}),
            "roll: shifts and axes must be of one length, not [1, 2] and [0]"},
           {{kFloats({3})}, attrs({1}, {-2}), "roll: axis -2 is out of range for f32[3] of rank 1"},
           {{kFloats({kBatch, 3})},
            attrs({1}, {0}),
            "roll: the batch dimension of f32[?, 3] cannot be rolled"}};
  return t;
}

Tensor with_shape(const Tensor& x, const Extents& shape) {
  Tensor y = x.copy();
  return Tensor::view(f64, shape, y.data(), std::make_shared<Tensor>(y));
}

OpTest squeeze_test() {
  OpTest t;
  t.op = "squeeze";
  t.samples = {{{random_tensor({1, 3, 1, 5})}, {}, {}},
               {{random_tensor({1, 3, 1, 5})}, axes_attr({-2}), {}},
               {{random_tensor({1, 3, 1, 5})}, axes_attr({1, 0}), {}},
               {{random_tensor({1})}, {}, {}},
               {{random_tensor({})}, {}, {}},
               {{random_tensor({0, 1})}, {}, {}},
               {{random_tensor({7, 1, 3})}, {}, {0}},
               {{random_tensor({1, 1, 3})}, {}, {0}}};
  t.reference = [](const Sample& s) {
    const Extents &from = s.inputs[0].shape(), axes = s.attrs.get_or<Extents>("axes", {});
    const int kept = s.batch_dims.empty() ? -1 : s.batch_dims[0];
    Extents shape;
    for (size_t d = 0; d < from.size(); ++d) {
      const bool listed = axes.empty() || std::ranges::any_of(axes, [&](int64_t axis) {
                            return place(axis, from.size()) == d;
                          });
      if (!listed || from[d] != 1 || kept == static_cast<int>(d)) shape.push_back(from[d]);
    }
    return std::vector{with_shape(s.inputs[0], shape)};
  };
  t.bad = {{{kFloats({3})}, axes_attr({1}), "squeeze: axis 1 is out of range for f32[3] of rank 1"},
           {{kFloats({1})}, axes_attr({0, 0}), "squeeze: axis 0 is given twice"}};
  return t;
}

OpTest unsqueeze_test() {
  OpTest t;
  t.op = "unsqueeze";
  t.samples = {{{random_tensor({3, 5})}, axes_attr({0}), {}},
               {{random_tensor({3, 5})}, axes_attr({3, 1}), {}},
               {{random_tensor({3, 5})}, axes_attr({-1}), {}},
               {{random_tensor({})}, axes_attr({0, -1}), {}},
               {{random_tensor({3})}, axes_attr({}), {}},
               {{random_tensor({0})}, axes_attr({1}), {}},
               {{random_tensor({7, 3})}, axes_attr({0, 2}), {0}}};
  t.reference = [](const Sample& s) {
    Extents axes = s.attrs.get<Extents>("axes"), shape = s.inputs[0].shape();
    const size_t rank = shape.size() + axes.size();
    for (int64_t& axis : axes) axis = static_cast<int64_t>(place(axis, rank));
    std::ranges::sort(axes);
    for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
    return std::vector{with_shape(s.inputs[0], shape)};
  };
  t.bad = {
      {{kFloats({3})}, axes_attr({2}), "unsqueeze: axis 2 is out of range for a result of rank 2"},
      {{kFloats({3})}, axes_attr({0, -3}), "unsqueeze: axis -3 is given twice"}};
  return t;
}

OpTest triangle_test(const std::string& op, bool lower) {
  OpTest t;
  t.op = op;
  const auto diagonal = [](int64_t d) { return Attrs{{"diagonal", d}}; };
  t.samples = {{{random_tensor({5, 5})}, {}, {}},
               {{random_tensor({3, 7})}, diagonal(2), {}},
               {{random_tensor({7, 3})}, diagonal(-3), {}},
               {{random_tensor({2, 3, 5})}, diagonal(-1), {}},
               {{random_tensor({3, 3})}, diagonal(INT64_MAX), {}},
               {{random_tensor({3, 3})}, diagonal(INT64_MIN), {}},
               {{random_tensor({1, 1})}, {}, {}},
               {{random_tensor({0, 3})}, diagonal(1), {}},
               {{random_tensor({7, 3, 5})}, diagonal(1), {0}}};
  t.reference = [lower](const Sample& s) {
    const Extents& shape = s.inputs[0].shape();
    const size_t rank = shape.size();
    return std::vector{gathered(s.inputs[0], shape, [&](const Extents& index) {
      const int64_t at = index[rank - 1] - index[rank - 2];
      const auto bound = s.attrs.get_or<int64_t>("diagonal", 0);
      return (lower ? at <= bound : at >= bound) ? index : Extents();
    })};
  };
  const std::string wanted =
      op + ": the operand must be matrices [..., M, N] with constant M and N";
  t.bad = {{{kFloats({3})}, {}, wanted + ", not f32[3]"},
           {{kFloats({kBatch, 3})}, {}, wanted + ", not f32[?, 3]"}};
  return t;
}

OpTest masked_fill_test() {
  OpTest t;
  t.op = "masked_fill";
  const Attrs two = {{"value", 2.0}}, lowest = {{"value", -INFINITY}};
  t.samples = {{{random_tensor({3, 5}), bool_tensor({3, 5})}, {{"value", 0.5}}, {}},
               {{random_tensor({3, 5}), bool_tensor({5})}, two, {}},
               {{random_tensor({5}), bool_tensor({3, 1})}, two, {}},
               {{random_tensor({}), bool_tensor({})}, two, {}},
               {{random_tensor({1}), bool_tensor({0})}, two, {}},
               {{random_tensor({37}), bool_tensor({1})}, two, {}},
               {{bool_tensor({7}), bool_tensor({7}, 1)}, {{"value", 1.0}}, {}},
               {{random_tensor({7, 3}), bool_tensor({7, 1})}, two, {0, 0}}};
  t.reference = [](const Sample& s) {
    const auto filled = [&](const std::vector<double>& x) {
      return x[1] != 0 ? s.attrs.get<double>("value") : x[0];
    };
    return std::vector{map_elements(s.inputs, filled, s.inputs[0].dtype())};
  };
  t.bad = {{{kFloats({3}), kFloats({3})},
            two,
            "masked_fill: operand 1 must be a bool tensor, not f32[3]"},
           {{kFloats({3}), {boolean, {2}, {}}},
            two,
            "masked_fill: cannot broadcast f32[3] and bool[2]: dimension 0 is both 3 and 2"},
           {{{i32, {3}, {}}, {boolean, {3}, {}}},
            lowest,
            "masked_fill: attribute 'value' is not representable in i32: -inf"},
           {{kFloats({3}), {boolean, {3}, {}}},
            {},
            "masked_fill: needs attribute 'value' (value of the masked elements)"}};
  return t;
}

/// Infinities and NaN, masked and not.
OpTest special_masked_fill_test() {
  OpTest t = masked_fill_test();
  t.samples = {{{Tensor::of<double>({4}, {{1, NAN, INFINITY, NAN}}),
                 Tensor::of<double>({4}, {{0, 1, 1, 0}}).cast(boolean)},
                {{"value", -INFINITY}},
                {}}};
  t.bad = {};
  t.gradient = false;
  return t;
}

OpTest arange_test() {
  OpTest t;
  t.op = "arange";
  const auto attrs = [](DType dtype, int64_t n, double start, double step) {
    return Attrs{{"type", Type{dtype, {n}, {}}}, {"start", start}, {"step", step}};
  };
  t.samples = {{{}, attrs(f64, 7, 0, 1), {}},     {{}, attrs(f64, 37, -1.5, 0.25), {}},
               {{}, attrs(f64, 5, 2, -0.75), {}}, {{}, attrs(f64, 1, 3, 1), {}},
               {{}, attrs(f64, 0, 3, 1), {}},     {{}, attrs(i64, 5, 0x1p53, -3), {}},
               {{}, attrs(i32, 7, -9, 3), {}},    {{}, attrs(u8, 5, 255, -63), {}}};
  t.reference = [](const Sample& s) {
    const Type& type = s.attrs.get<Type>("type");
    Tensor y(f64, {type.shape[0].size});
    for (int64_t i = 0; i < y.numel(); ++i) {
      at(y, i) =
          s.attrs.get<double>("start") + static_cast<double>(i) * s.attrs.get<double>("step");
    }
    return std::vector{type.dtype == f64 ? y : y.cast(type.dtype)};
  };
  t.bad = {
      {{}, {}, "arange: needs attribute 'type' (type [n] of the result)"},
      {{},
       {{"type", Type{f32, {2, 3}, {}}}},
       "arange: attribute 'type' must be a numeric type [n], not f32[2, 3]"},
      {{},
       {{"type", Type{f32, {kBatch}, {}}}},
       "arange: attribute 'type' must be a numeric type [n], not f32[?]"},
      {{},
       {{"type", Type{boolean, {2}, {}}}},
       "arange: attribute 'type' must be a numeric type [n], not bool[2]"},
      {{}, attrs(f32, 2, NAN, 1), "arange: attribute 'start' must be finite, not nan"},
      {{}, attrs(f32, 2, 0, INFINITY), "arange: attribute 'step' must be finite, not inf"},
      {{}, attrs(i32, 2, 0.5, 1), "arange: attribute 'start' is not representable in i32: 0.5"},
      {{}, attrs(i32, 2, 0, 0.5), "arange: attribute 'step' is not representable in i64: 0.5"},
      {{}, attrs(u8, 3, 1, -1), "arange: the last element is not representable in u8: -1.0"}};
  return t;
}

const AddOpTest kTile(tile_test());
const AddOpTest kStack(stack_test());
const AddOpTest kSplit(split_test());
const AddOpTest kFlip(flip_test());
const AddOpTest kRoll(roll_test());
const AddOpTest kSqueeze(squeeze_test());
const AddOpTest kUnsqueeze(unsqueeze_test());
const AddOpTest kTril(triangle_test("tril", true));
const AddOpTest kTriu(triangle_test("triu", false));
const AddOpTest kMaskedFill(masked_fill_test());
const AddOpTest kSpecialMaskedFill(special_masked_fill_test());
const AddOpTest kArange(arange_test());

}  // namespace
}  // namespace fluid::testing::arrange_samples
