#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::shape_samples {
namespace {

Attrs to_shape(Shape shape) { return {{"to", Type{f64, std::move(shape), {}}}}; }

OpTest reshape_test() {
  OpTest t;
  t.op = "reshape";
  t.samples = {{{random_tensor({3, 4})}, to_shape({2, 6}), {}},
               {{random_tensor({1})}, to_shape({}), {}},
               {{random_tensor({0, 3})}, to_shape({7, 0}), {}},
               {{random_tensor({7, 6})}, to_shape({kBatch, 2, 3}), {0}}};
  t.reference = [](const Sample& s) {
    Extents shape;
    for (const Dim& d : s.attrs.get<Type>("to").shape) shape.push_back(d.at(7));
    Tensor y = s.inputs[0].copy();
    return std::vector{Tensor::view(f64, shape, y.data(), std::make_shared<Tensor>(y))};
  };
  t.bad = {{{{f32, {2, 3}, {}}}, to_shape({7}), "reshape: f32[2, 3] has 6 elements, [7] has 7"}};
  return t;
}

OpTest flatten_test() {
  OpTest t;
  t.op = "flatten";
  t.samples = {{{random_tensor({2, 3, 5})}, {}, {}},
               {{random_tensor({2, 3, 5})}, {{"axis", int64_t{0}}}, {}},
               {{random_tensor({7, 3, 5})}, {{"axis", int64_t{2}}}, {0}},
               {{random_tensor({0, 3})}, {}, {}},
               {{random_tensor({1})}, {{"axis", int64_t{1}}}, {}}};
  t.reference = [](const Sample& s) {
    const Extents& from = s.inputs[0].shape();
    const auto axis = s.attrs.get_or<int64_t>("axis", 1);
    Extents shape(from.begin(), from.begin() + axis);
    shape.push_back(numel_of(Extents(from.begin() + axis, from.end())));
    Tensor y = s.inputs[0].copy();
    return std::vector{Tensor::view(f64, shape, y.data(), std::make_shared<Tensor>(y))};
  };
  t.bad = {
      {{{f32, {2}, {}}}, {{"axis", int64_t{2}}}, "flatten: axis 2 is out of range for f32[2]"}};
  return t;
}

OpTest transpose_test() {
  OpTest t;
  t.op = "transpose";
  t.samples = {{{random_tensor({3, 5})}, {}, {}},
               {{random_tensor({2, 3, 5})}, {{"perm", Extents{1, 2, 0}}}, {}},
               {{random_tensor({5, 5})}, {{"perm", Extents{1, 0}}}, {}},
               {{random_tensor({5, 5})}, {}, {}},
               {{random_tensor({})}, {}, {}},
               {{random_tensor({0, 3})}, {}, {}},
               {{random_tensor({7, 3})}, {{"perm", Extents{1, 0}}}, {0}}};
  t.reference = [](const Sample& s) {
    const size_t rank = s.inputs[0].shape().size();
    Extents perm = s.attrs.get_or<Extents>("perm", {});
    for (size_t d = rank; perm.size() < rank;) perm.push_back(static_cast<int64_t>(--d));
    Extents shape(rank);
    for (size_t d = 0; d < rank; ++d) {
      shape[d] = s.inputs[0].shape()[static_cast<size_t>(perm[d])];
    }
    return std::vector{gathered(s.inputs[0], shape, [&](const Extents& index) {
      Extents at(rank);
      for (size_t d = 0; d < rank; ++d) at[static_cast<size_t>(perm[d])] = index[d];
      return at;
    })};
  };
  t.bad = {{{{f32, {2, 3}, {}}},
            {{"perm", Extents{0, 0}}},
            "transpose: perm must hold each of the 2 dimensions once, not be [0, 0]"}};
  return t;
}

OpTest broadcast_to_test() {
  OpTest t;
  t.op = "broadcast_to";
  t.samples = {{{random_tensor({3, 1})}, to_shape({2, 3, 5}), {}},
               {{random_tensor({})}, to_shape({7}), {}},
               {{random_tensor({1})}, to_shape({0}), {}},
               {{random_tensor({3})}, to_shape({3}), {}},
               {{random_tensor({7, 1})}, to_shape({kBatch, 3}), {0}}};
  t.reference = [](const Sample& s) {
    Extents shape;
    for (const Dim& d : s.attrs.get<Type>("to").shape) shape.push_back(d.at(7));
    const Extents& from = s.inputs[0].shape();
    return std::vector{gathered(s.inputs[0], shape, [&](const Extents& index) {
      Extents at(index.end() - static_cast<ptrdiff_t>(from.size()), index.end());
      for (size_t d = 0; d < from.size(); ++d) at[d] = from[d] == 1 ? 0 : at[d];
      return at;
    })};
  };
  t.bad = {
      {{{f32, {2, 3}, {}}}, to_shape({3}), "broadcast_to: f32[2, 3] does not broadcast to [3]"}};
  return t;
}

OpTest concat_test() {
  OpTest t;
  t.op = "concat";
  const Attrs second = {{"axis", int64_t{1}}};
  t.samples = {{{random_tensor({2, 3}), random_tensor({1, 3}), random_tensor({4, 3})}, {}, {}},
               {{random_tensor({3, 2}), random_tensor({3, 5})}, second, {}},
               {{random_tensor({3, 0}), random_tensor({3, 5})}, {{"axis", int64_t{-1}}}, {}},
               {{random_tensor({7})}, {}, {}},
               {{random_tensor({7, 2}), random_tensor({7, 3})}, second, {0, 0}}};
  t.reference = [](const Sample& s) {
    const int64_t given = s.attrs.get_or<int64_t>("axis", 0);
    Extents shape = s.inputs[0].shape();
    const auto axis =
        static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(shape.size()) : given);
    std::vector<double> rows;
    const int64_t outer =
        numel_of(Extents(shape.begin(), shape.begin() + given + (given < 0 ? 2 : 0)));
    shape[axis] = 0;
    for (const Tensor& x : s.inputs) shape[axis] += x.shape()[axis];
    for (int64_t o = 0; o < outer; ++o) {
      for (const Tensor& x : s.inputs) {
        const int64_t row = x.numel() / outer;
        for (int64_t i = 0; i < row; ++i) rows.push_back(x.at(o * row + i));
      }
    }
    Tensor y(f64, shape);
    std::copy(rows.begin(), rows.end(), y.as<double>().begin());
    return std::vector{y};
  };
  t.bad = {
      {{{f32, {2, 3}, {}}, {f32, {2, 4}, {}}},
       {},
       "concat: operands f32[2, 3] and f32[2, 4] differ besides axis 0"},
      {{{f32, {kBatch}, {}}, {f32, {kBatch}, {}}}, {}, "concat: cannot join f32[?] along axis 0"},
      {{}, {}, "concat: takes operands (xs...), not 0"}};
  return t;
}

OpTest slice_test() {
  OpTest t;
  t.op = "slice";
  const auto attrs = [](Extents starts, Extents stops, Extents steps, Extents axes) {
    return Attrs{{"starts", starts}, {"stops", stops}, {"steps", steps}, {"axes", axes}};
  };
  t.samples = {{{random_tensor({7, 5})}, attrs({1, 0}, {6, 4}, {2, 3}, {0, 1}), {}},
               {{random_tensor({7, 5})}, attrs({-3}, {100}, {1}, {1}), {}},
               {{random_tensor({7})}, attrs({2}, {2}, {1}, {0}), {}},
               {{random_tensor({7})}, attrs({0}, {7}, {7}, {0}), {}},
               {{random_tensor({7})}, attrs({-1}, {INT64_MIN}, {-1}, {0}), {}},
               {{random_tensor({7, 5})}, attrs({100, 3}, {0, -6}, {-2, -3}, {0, 1}), {}},
               {{random_tensor({7, 5})}, attrs({-8, 1}, {-9, 4}, {-1, 2}, {0, 1}), {}},
               {{random_tensor({7})}, attrs({5}, {1}, {INT64_MIN}, {0}), {}},
               {{random_tensor({7})}, attrs({1}, {5}, {-1}, {0}), {}},
               {{random_tensor({0})}, attrs({3}, {-3}, {-2}, {0}), {}},
               {{random_tensor({7, 5})}, attrs({4}, {0}, {-2}, {1}), {0}},
               {{random_tensor({7, 5})}, attrs({1}, {4}, {1}, {1}), {0}}};
  t.reference = [](const Sample& s) {
    Extents shape = s.inputs[0].shape();
    const Extents extents = shape, axes = s.attrs.get<Extents>("axes");
    Extents first(shape.size(), 0), step(shape.size(), 1);
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto d = static_cast<size_t>(axes[i]);
      const int64_t n = extents[d], given = s.attrs.get<Extents>("starts")[i];
      const int64_t end = s.attrs.get<Extents>("stops")[i];
      step[d] = s.attrs.get<Extents>("steps")[i];
      const bool forward = step[d] > 0;
      const auto place = [&](int64_t p) {
        const int64_t counted = p < 0 ? p + n : p;
        return forward ? std::clamp<int64_t>(counted, 0, n)
                       : std::clamp<int64_t>(counted, -1, n - 1);
      };
      first[d] = place(given);
      shape[d] = 0;
      for (int64_t p = first[d]; forward ? p < place(end) : p > place(end);) {
        ++shape[d];
        if (std::abs(step[d] / 2) > n) break;
        p += step[d];
      }
    }
    return std::vector{gathered(s.inputs[0], shape, [&](const Extents& index) {
      Extents at = index;
      for (size_t d = 0; d < at.size(); ++d) at[d] = first[d] + at[d] * step[d];
      return at;
    })};
  };
  t.bad = {
      {{{f32, {5}, {}}}, attrs({0}, {5}, {0}, {}), "slice: steps must not be 0, but are [0]"},
      {{{f32, {kBatch}, {}}},
       attrs({0}, {1}, {}, {}),
       "slice: the batch dimension of f32[?] cannot be sliced"},
      {{{f32, {5}, {}}},
       attrs({0}, {}, {}, {}),
       "slice: starts, stops, steps and axes must be of one length, no longer than the rank of "
       "f32[5], not [0], ints[], ints[] and ints[]"},
      {{{f32, {5}, {}}},
       attrs({0}, {1}, {}, {1}),
       "slice: axis 1 is out of range for f32[5] of rank 1"}};
  return t;
}

OpTest pad_test() {
  OpTest t;
  t.op = "pad";
  const auto attrs = [](Extents low, Extents high, Extents interior, double value) {
    return Attrs{{"low", low}, {"high", high}, {"interior", interior}, {"value", value}};
  };
  t.samples = {{{random_tensor({3, 5})}, attrs({1, 0}, {2, 3}, {0, 2}, 0.5), {}},
               {{random_tensor({7})}, attrs({}, {}, {1}, -1), {}},
               {{random_tensor({0})}, attrs({1}, {1}, {3}, 2), {}},
               {{random_tensor({1})}, attrs({2}, {0}, {3}, 2), {}},
               {{random_tensor({7, 3})}, attrs({0, 1}, {0, 1}, {}, 0), {0}}};
  for (const std::string mode : {"reflect", "edge"}) {
    const auto repeated = [&](Extents low, Extents high) {
      return Attrs{{"low", low}, {"high", high}, {"mode", mode}};
    };
    t.samples.push_back({{random_tensor({3, 5})}, repeated({2, 0}, {1, 4}), {}});
    t.samples.push_back({{random_tensor({2, 3, 4})}, repeated({1, 2, 0}, {1, 2, 3}), {}});
    t.samples.push_back({{random_tensor({1, 3})}, repeated({0, 1}, {}), {}});
    t.samples.push_back({{random_tensor({0, 2})}, repeated({0, 1}, {0, 1}), {}});
    t.samples.push_back({{random_tensor({7, 5})}, repeated({0, 3}, {0, 3}), {0}});
  }
  t.samples.push_back(
      {{random_tensor({1, 2})}, {{"low", Extents{3, 5}}, {"mode", std::string("edge")}}, {}});
  t.reference = [](const Sample& s) {
    const Extents from = s.inputs[0].shape();
    const auto mode = s.attrs.get_or<std::string>("mode", "constant");
    const auto entry = [&](const char* name, size_t d) {
      const Extents list = s.attrs.get_or<Extents>(name, {});
      return list.empty() ? 0 : list[d];
    };
    Extents shape;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t spread = from[d] == 0 ? 0 : 1 + (from[d] - 1) * (entry("interior", d) + 1);
      shape.push_back(entry("low", d) + spread + entry("high", d));
    }
    return std::vector{gathered(
        s.inputs[0], shape,
        [&](const Extents& index) {
          Extents at;
          for (size_t d = 0; d < index.size(); ++d) {
            int64_t p = index[d] - entry("low", d);
            const int64_t step = entry("interior", d) + 1;
            if (mode == "edge") p = std::clamp<int64_t>(p, 0, from[d] - 1);
            if (mode == "reflect" && p < 0) p = -p;
            if (mode == "reflect" && p >= from[d]) p = 2 * from[d] - 2 - p;
            if (p < 0 || p % step != 0 || p / step >= from[d]) return Extents{};
            at.push_back(p / step);
          }
          return at;
        },
        s.attrs.get_or("value", 0.0))};
  };
  const auto mode = [](const std::string& name, Extents low, Extents interior = {}) {
    return Attrs{{"low", low}, {"interior", interior}, {"mode", name}};
  };
  t.bad = {
      {{{f32, {5}, {}}},
       mode("wrap", {1}),
       "pad: mode must be \"constant\", \"reflect\" or \"edge\", not \"wrap\""},
      {{{f32, {5}, {}}}, mode("edge", {1}, {1}), "pad: interior padding needs mode \"constant\""},
      {{{f32, {3, 0}, {}}},
       mode("edge", {0, 1}),
       "pad: dimension 1 of f32[3, 0] has no elements to pad it with"},
      {{{f32, {5}, {}}},
       mode("reflect", {5}),
       "pad: reflect padding 5 is not below the extent of dimension 0 of f32[5]"},

      {{{u8, {5}, {}}},
       attrs({1}, {}, {}, -1),
       "pad: attribute 'value' is not representable in u8: -1.0"},
      {{{f32, {5}, {}}},
       attrs({-1}, {}, {}, 0),
       "pad: low must lie between 0 and 2147483647, not be [-1]"},
      {{{f32, {5}, {}}},
       attrs({INT64_MAX}, {}, {}, 0),
       "pad: low must lie between 0 and 2147483647, not be [9223372036854775807]"},
      {{{u8, {int64_t{1} << 40}, {}}},
       attrs({}, {}, {INT32_MAX}, 0),
       "pad: dimension 0 of u8[1099511627776] grows too large"},
      {{{f32, {5}, {}}},
       attrs({1, 1}, {}, {}, 0),
       "pad: low needs one entry per dimension of f32[5], not [1, 1]"},
      {{{f32, {kBatch}, {}}},
       attrs({1}, {}, {}, 0),
       "pad: the batch dimension of f32[?] cannot be padded"}};
  return t;
}

OpTest matmul_test() {
  OpTest t;
  t.op = "matmul";
  const Attrs ta = {{"transpose_a", true}}, tb = {{"transpose_b", true}};
  const Attrs both = {{"transpose_a", true}, {"transpose_b", true}};
  t.samples = {{{random_tensor({3, 5}), random_tensor({5, 7})}, {}, {}},
               {{random_tensor({5, 3}), random_tensor({5, 7})}, ta, {}},
               {{random_tensor({3, 5}), random_tensor({7, 5})}, tb, {}},
               {{random_tensor({5, 3}), random_tensor({7, 5})}, both, {}},
               {{random_tensor({2, 1, 3, 5}), random_tensor({4, 5, 2})}, {}, {}},
               {{random_tensor({1, 1}), random_tensor({1, 1})}, {}, {}},
               {{random_tensor({3, 0}), random_tensor({0, 2})}, {}, {}},
               {{random_tensor({0, 3}), random_tensor({3, 2})}, {}, {}},
               {{random_tensor({7, 3}), random_tensor({3, 2})}, {}, {0}},
               {{random_tensor({7, 3}), random_tensor({7, 2})}, ta, {0, 0}}};
  t.slack = 4;
  t.reference = [](const Sample& s) {
    const bool flip_a = s.attrs.get_or("transpose_a", false);
    const bool flip_b = s.attrs.get_or("transpose_b", false);
    const Tensor &a = s.inputs[0], &b = s.inputs[1];
    const size_t ra = a.shape().size(), rb = b.shape().size();
    const int64_t ar = a.shape()[ra - 2], ac = a.shape()[ra - 1], bc = b.shape()[rb - 1];
    const int64_t br = b.shape()[rb - 2];
    const int64_t m = flip_a ? ac : ar, k = flip_a ? ar : ac, n = flip_b ? br : bc;
    // Only the sample [2, 1, ...] times [4, ...] has batch dimensions.
    const bool stacked = ra > 2;
    Tensor y(f64, stacked ? Extents{2, 4, m, n} : Extents{m, n});
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t column = i % n, row = i / n % m, matrix = i / n / m;
      const int64_t at_a = stacked ? matrix / 4 * m * k : 0,
                    at_b = stacked ? matrix % 4 * k * n : 0;
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += a.at(at_a + (flip_a ? p * ac + row : row * ac + p)) *
               b.at(at_b + (flip_b ? column * bc + p : p * bc + column));
      }
      y.as<double>()[static_cast<size_t>(i)] = sum;
    }
    return std::vector{y};
  };
  t.bad = {{{{f32, {2, 3}, {}}, {f32, {4, 2}, {}}},
            {},
            "matmul: cannot multiply f32[2, 3] by f32[4, 2]: the inner extents are 3 and 4"},
           {{{f32, {3}, {}}, {f32, {3, 2}, {}}},
            {},
            "matmul: operands must be matrices, of rank 2 or more: f32[3]"}};
  return t;
}

OpTest fill_test() {
  OpTest t;
  t.op = "fill";
  t.samples = {{{}, {{"type", Type{f64, {3, 5}, {}}}, {"value", 2.5}}, {}},
               {{}, {{"type", Type{f64, {0}, {}}}, {"value", 1.0}}, {}},
               {{}, {{"type", Type{f64, {}, {}}}, {"value", -1.0}}, {}}};
  t.reference = [](const Sample& s) {
    Extents shape;
    for (const Dim& d : s.attrs.get<Type>("type").shape) shape.push_back(d.size);
    Tensor y(f64, shape);
    for (double& element : y.as<double>()) element = s.attrs.get<double>("value");
    return std::vector{y};
  };
  const auto bad = [](DType dtype, double value) {
    return Attrs{{"type", Type{dtype, {3}, {}}}, {"value", value}};
  };
  t.bad = {{{}, {}, "fill: needs attribute 'type' (type of the result)"},
           {{}, bad(i64, 0.5), "fill: attribute 'value' is not representable in i64: 0.5"},
           {{},
            bad(i64, 0x1p63),
            "fill: attribute 'value' is not representable in i64: 9223372036854775808.0"},
           {{},
            bad(i32, 2147483648.0),
            "fill: attribute 'value' is not representable in i32: 2147483648.0"},
           {{}, bad(i32, std::nan("")), "fill: attribute 'value' is not representable in i32: nan"},
           {{}, bad(u8, -1), "fill: attribute 'value' is not representable in u8: -1.0"},
           {{}, bad(u8, 256), "fill: attribute 'value' is not representable in u8: 256.0"},
           {{}, bad(boolean, 2), "fill: attribute 'value' is not representable in bool: 2.0"}};
  return t;
}

OpTest numel_test() {
  OpTest t;
  t.op = "numel";
  t.samples = {{{}, {{"of", Type{f64, {3, 5}, {}}}}, {}},
               {{}, {{"of", Type{f64, {}, {}}}}, {}},
               {{}, {{"of", Type{f64, {7, 0}, {}}}}, {}}};
  t.reference = [](const Sample& s) {
    double n = 1;
    for (const Dim& d : s.attrs.get<Type>("of").shape) n *= static_cast<double>(d.size);
    Tensor y(f64, {});
    y.as<double>()[0] = n;
    return std::vector{y};
  };
  return t;
}

OpTest copy_test() {
  OpTest t = unary_test("copy", [](double x) { return x; });
  t.own_memory = true;
  t.samples.push_back({{random_tensor({5}, 0, 9).cast(i32)}, {}, {}});
  t.samples.push_back({{bool_tensor({5})}, {}, {}});
  return t;
}

const AddOpTest kReshape(reshape_test());
const AddOpTest kFlatten(flatten_test());
const AddOpTest kTranspose(transpose_test());
const AddOpTest kBroadcastTo(broadcast_to_test());
const AddOpTest kConcat(concat_test());
const AddOpTest kSlice(slice_test());
const AddOpTest kPad(pad_test());
const AddOpTest kMatmul(matmul_test());
const AddOpTest kFill(fill_test());
const AddOpTest kNumel(numel_test());
const AddOpTest kCopy(copy_test());

}  // namespace
}  // namespace fluid::testing::shape_samples
