// Embeddings of indices and positions, against loops over their definitions.

#include <algorithm>

#include "tests/ops/samples/lines.h"

namespace fluid::testing::embedding_samples {
namespace {

Attrs with_padding(Attrs attrs, const Extents& padding) {
  attrs.set("padding_idx", padding);
  return attrs;
}

/// The row that "padding_idx" names; -1: none.
int64_t padding_of(const Sample& s) {
  const auto rows = s.attrs.get_or<Extents>("padding_idx", {});
  if (rows.empty()) return -1;
  return rows[0] < 0 ? rows[0] + s.inputs[0].shape()[0] : rows[0];
}

OpTest embedding_test() {
  OpTest t;
  t.op = "embedding";
  t.samples = {{{random_tensor({5, 3}), whole_tensor({7}, 0, 5)}, {}, {}},
               {{random_tensor({5, 1}), whole_tensor({3, 2}, 0, 5, i32)}, {}, {-1, 0}},
               {{random_tensor({7, 2}), whole_tensor({}, 0, 7, u8)}, {}, {}},
               {{random_tensor({5, 3}), whole_tensor({0}, 0, 5)}, {}, {}},
               // The gradient of a row that no index names is 0 with and without padding.
               {{random_tensor({5, 2}), whole_tensor({3}, 0, 4)}, with_padding({}, {-1}), {}}};
  t.reference = [](const Sample& s) {
    const Tensor &table = s.inputs[0], &index = s.inputs[1];
    const int64_t width = table.shape()[1];
    Extents shape = index.shape();
    shape.push_back(width);
    Tensor y(f64, shape);
    for (int64_t i = 0; i < y.numel(); ++i) {
      at(y, i) = table.at(static_cast<int64_t>(index.at(i / width)) * width + i % width);
    }
    return std::vector{y};
  };
  const Type table = {f32, {5, 2}, {}}, index = {i64, {3}, {}};
  t.bad = {
      {{{f32, {0, 2}, {}}, index},
       {},
       "embedding: the table must be a float matrix [V, D] with V > 0, not f32[0, 2]"},
      {{table, {f32, {3}, {}}}, {}, "embedding: the index must be an integer tensor, not f32[3]"},
      {{table, index},
       with_padding({}, {5}),
       "embedding: attribute 'padding_idx' must be a row of f32[5, 2], not [5]"},
      {{table, index},
       with_padding({}, {0, 1}),
       "embedding: attribute 'padding_idx' takes at most one row, not [0, 1]"}};
  return t;
}

/// The padding row, whose gradient PyTorch's results check.
OpTest embedding_padding_test() {
  OpTest t = embedding_test();
  t.samples = {{{random_tensor({5, 2}), whole_tensor({7}, 0, 5)}, with_padding({}, {2}), {}}};
  t.gradient = false;
  t.bad = {};
  return t;
}

OpTest embedding_bag_test() {
  OpTest t;
  t.op = "embedding_bag";
  for (const char* mode : {"sum", "mean", "max"}) {
    const Attrs attrs = {{"mode", std::string(mode)}};
    const auto sample = [&](Extents table, Tensor index, const Attrs& given,
                            std::vector<int> batch) {
      t.samples.push_back(
          {{random_tensor(std::move(table)), std::move(index)}, given, std::move(batch)});
    };
    sample({5, 3}, whole_tensor({2, 3}, 0, 5), attrs, {});
    // Bags without and with padding, and one of padding only.
    sample({5, 2}, Tensor::of<int64_t>({3, 2}, std::vector<int64_t>{0, 4, 2, 1, 2, 2}),
           with_padding(attrs, {2}), {-1, 0});
    sample({3, 1}, whole_tensor({5, 1}, 0, 3, i32), with_padding(attrs, {-3}), {});
    sample({3, 2}, whole_tensor({2, 0}, 0, 3), attrs, {});
    sample({3, 2}, whole_tensor({0, 2}, 0, 3, u8), attrs, {});
  }
  for (const Extents& padding : {Extents{}, Extents{1}}) {
    t.samples.push_back({{random_tensor({5, 2}), whole_tensor({3, 4}, 0, 5), random_tensor({3, 4})},
                         with_padding({{"mode", std::string("sum")}}, padding),
                         {-1, 0, 0}});
  }
  t.reference = [](const Sample& s) {
    const Tensor &table = s.inputs[0], &index = s.inputs[1];
    const int64_t bags = index.shape()[0], length = index.shape()[1], width = table.shape()[1];
    const auto mode = s.attrs.get<std::string>("mode");
    Tensor y(f64, {bags, width});
    for (int64_t n = 0; n < bags; ++n) {
      for (int64_t d = 0; d < width; ++d) {
        std::vector<double> rows;
        for (int64_t i = n * length; i < (n + 1) * length; ++i) {
          const auto row = static_cast<int64_t>(index.at(i));
          const double weight = s.inputs.size() > 2 ? s.inputs[2].at(i) : 1;
          if (row != padding_of(s)) rows.push_back(weight * table.at(row * width + d));
        }
        double& to = at(y, n * width + d);
        if (rows.empty()) continue;
        for (const double v : rows) to += v;
        if (mode == "mean") to /= static_cast<double>(rows.size());
        if (mode == "max") to = *std::ranges::max_element(rows);
      }
    }
    return std::vector{y};
  };
  t.slack = 4;
  const Type table = {f32, {5, 2}, {}}, index = {i64, {3, 4}, {}};
  t.bad = {
      {{table, {i64, {3}, {}}},
       {},
       "embedding_bag: the index must be a matrix [N, L] with constant L, not i64[3]"},
      {{table, index},
       {{"mode", std::string("min")}},
       R"(embedding_bag: mode must be "sum", "mean" or "max", not "min")"},
      {{table, index, {f32, {3, 4}, {}}}, {}, R"(embedding_bag: weights require mode = "sum")"},
      {{table, index, {f32, {3}, {}}},
       {{"mode", std::string("sum")}},
       "embedding_bag: expects weights f32[3, 4], got f32[3]"}};
  return t;
}

OpTest embedding_bag_grad_test() {
  OpTest t;
  t.op = "embedding_bag_grad";
  const auto sample = [&](Tensor index, int64_t rows, int64_t width, bool weighted,
                          std::vector<int> batch) {
    const Extents shape = index.shape();
    Sample s{{random_tensor({shape[0], width}), std::move(index)},
             {{"input", Type{f64, {rows, width}, {}}}},
             std::move(batch)};
    if (weighted) s.inputs.push_back(random_tensor(shape, -2, 2, 1));
    t.samples.push_back(s);
  };
  sample(whole_tensor({7, 3}, -1, 5), 5, 2, false, {0, 0});
  sample(whole_tensor({5, 2}, 0, 3, i32), 3, 7, false, {});
  sample(whole_tensor({3, 5}, -1, 4), 4, 3, true, {0, 0, 0});
  sample(whole_tensor({2, 0}, 0, 3), 3, 2, false, {});
  sample(whole_tensor({0, 2}, 0, 3), 3, 2, true, {});
  t.reference = [](const Sample& s) {
    const Tensor &dy = s.inputs[0], &index = s.inputs[1];
    const Shape& table = s.attrs.get<Type>("input").shape;
    const int64_t rows = table[0].size, width = table[1].size;
    Tensor y(f64, {rows, width});
    for (int64_t n = 0; n < index.numel(); ++n) {
      const auto row = static_cast<int64_t>(index.at(n));
      const int64_t bag = n / index.shape()[1];
      for (int64_t d = 0; row >= 0 && row < rows && d < width; ++d) {
        const double weight = s.inputs.size() > 2 ? s.inputs[2].at(n) : 1;
        at(y, row * width + d) += weight * dy.at(bag * width + d);
      }
    }
    return std::vector{y};
  };
  t.slack = 4;
  const Type dy = {f32, {3, 2}, {}}, index = {i64, {3, 4}, {}};
  const Attrs table = {{"input", Type{f32, {5, 2}, {}}}};
  t.bad = {
      {{dy, {i64, {3}, {}}},
       table,
       "embedding_bag_grad: dy f32[3, 2] and index i64[3] do not fit to the table f32[5, 2]"},
      {{dy, index, dy}, table, "embedding_bag_grad: the weights do not fit to index i64[3, 4]"}};
  return t;
}

/// Rotates element pairs of [..., D]; angle(row, pair) gives cosine and sine.
Tensor rotated(const Tensor& x, int64_t dims, bool interleaved,
               const std::function<std::pair<double, double>(int64_t row, int64_t pair)>& angle) {
  const int64_t width = x.shape().back();
  Tensor y = x.copy();
  for (int64_t row = 0; row < x.numel() / width; ++row) {
    for (int64_t pair = 0; pair < dims / 2; ++pair) {
      const int64_t a = row * width + (interleaved ? 2 * pair : pair);
      const int64_t b = a + (interleaved ? 1 : dims / 2);
      const auto [cos, sin] = angle(row, pair);
      at(y, a) = x.at(a) * cos - x.at(b) * sin;
      at(y, b) = x.at(b) * cos + x.at(a) * sin;
    }
  }
  return y;
}

OpTest apply_rotary_embedding_test() {
  OpTest t;
  t.op = "apply_rotary_embedding";
  for (const bool interleaved : {false, true}) {
    const auto sample = [&](Extents x, const Extents& angles, std::vector<int> batch) {
      t.samples.push_back({{random_tensor(std::move(x)), random_tensor(angles, -1, 1, 1),
                            random_tensor(angles, -1, 1, 2)},
                           {{"interleaved", interleaved}},
                           std::move(batch)});
    };
    sample({3, 4}, {3, 2}, {});
    sample({2, 3, 5}, {3, 2}, {0});
    sample({2, 2, 3, 7}, {2, 1, 3, 1}, {0, 0, 0});
    sample({2}, {1}, {});
    sample({0, 2}, {0, 1}, {});
  }
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &cos = s.inputs[1], &sin = s.inputs[2];
    const int64_t pairs = cos.shape().back();
    Extents rows = x.shape();
    rows.back() = pairs;
    const auto spread = [&](const Tensor& v) {
      return map_elements({Tensor(f64, rows), v},
                          [](const std::vector<double>& e) { return e[1]; });
    };
    const Tensor all_cos = spread(cos), all_sin = spread(sin);
    return std::vector{
        rotated(x, 2 * pairs, s.attrs.get<bool>("interleaved"), [&](int64_t row, int64_t pair) {
          return std::pair(all_cos.at(row * pairs + pair), all_sin.at(row * pairs + pair));
        })};
  };
  t.slack = 4;
  const Type x = {f32, {3, 4}, {}}, angles = {f32, {3, 2}, {}};
  const std::string op = "apply_rotary_embedding: ";
  t.bad = {{{{i64, {3, 4}, {}}, angles, angles},
            {},
            op + "operand 0 must be a float tensor, not i64[3, 4]"},
           {{{f32, {3, kBatch}, {}}, angles, angles},
            {},
            op + "the operand must be [..., D] with constant D, not f32[3, ?]"},
           {{x, angles, {f32, {3, 1}, {}}}, {}, op + "cos and sin differ: f32[3, 2] and f32[3, 1]"},
           {{x, {f64, {3, 2}, {}}, {f64, {3, 2}, {}}},
            {},
            op + "cos must have the dtype of x or f32, not f64[3, 2]"},
           {{x, {f32, {3, 3}, {}}, {f32, {3, 3}, {}}},
            {},
            op + "cos f32[3, 3] does not fit to f32[3, 4]: expects [..., R / 2] with R <= D, which "
                 "broadcasts"}};
  return t;
}

OpTest rotary_embedding_test() {
  OpTest t;
  t.op = "rotary_embedding";
  const auto sample = [&](std::vector<Tensor> inputs, bool interleaved, int64_t dims, double theta,
                          std::vector<int> batch) {
    t.samples.push_back({std::move(inputs),
                         {{"interleaved", interleaved}, {"dims", dims}, {"theta", theta}},
                         std::move(batch)});
  };
  for (const bool interleaved : {false, true}) {
    sample({random_tensor({2, 3, 4})}, interleaved, 0, 10000, {0});
    sample({random_tensor({5, 7})}, interleaved, 6, 100, {});
    sample({random_tensor({2, 2, 3, 4}), whole_tensor({2, 1, 3}, 0, 11)}, interleaved, 2, 10000,
           {0, 0});
  }
  sample({random_tensor({3, 2}), whole_tensor({1}, 2, 9, i32)}, false, 0, 10, {0});
  sample({random_tensor({0, 2})}, true, 0, 10, {});
  sample({random_tensor({3, 4})}, false, 0, 1, {});
  t.reference = [](const Sample& s) {
    const Tensor& x = s.inputs[0];
    const int64_t length = x.shape()[x.shape().size() - 2];
    const auto given = s.attrs.get<int64_t>("dims");
    const int64_t dims = given == 0 ? x.shape().back() : given;
    Tensor position(f64, Extents(x.shape().begin(), x.shape().end() - 1));
    for (int64_t i = 0; i < position.numel(); ++i)
      at(position, i) = static_cast<double>(i % length);
    if (s.inputs.size() > 1) {
      position = map_elements({position, s.inputs[1].cast(f64)},
                              [](const std::vector<double>& e) { return e[1]; });
    }
    const auto angle = [&](int64_t row, int64_t pair) {
      const double exponent = -2 * static_cast<double>(pair) / static_cast<double>(dims);
      const double a = position.at(row) * std::pow(s.attrs.get<double>("theta"), exponent);
      return std::pair(std::cos(a), std::sin(a));
    };
    return std::vector{rotated(x, dims, s.attrs.get<bool>("interleaved"), angle)};
  };
  t.slack = 8;
  const Type x = {f32, {3, 4}, {}};
  const std::string op = "rotary_embedding: ";
  t.bad = {
      {{{f32, {4}, {}}}, {}, op + "the operand must be [..., T, D] with constant D, not f32[4]"},
      {{x}, {{"theta", 0.0}}, op + "attribute 'theta' must be positive"},
      {{x}, {{"theta", INFINITY}}, op + "attribute 'theta' must be finite, not inf"},
      {{x},
       {{"dims", int64_t{3}}},
       op + "the number of rotated elements must be even, positive and at most D, not 3"},
      {{{f32, {kBatch, 4}, {}}},
       {},
       op + "needs positions: the length of f32[?, 4] is the batch dimension"},
      {{x, {f32, {3}, {}}},
       {},
       op + "the positions must be an integer tensor [..., T], not f32[3]"},
      {{{f32, {1, 3, 4}, {}}, {i64, {2, 3}, {}}},
       {},
       op + "positions i64[2, 3] do not broadcast to [1, 3]"}};
  return t;
}

OpTest alibi_test() {
  OpTest t;
  t.op = "alibi";
  for (const Extents& shape : std::vector<Extents>{
           {8, 2, 3}, {1, 3, 3}, {2, 5, 1}, {3, 2, 2}, {12, 1, 3}, {0, 2, 2}, {2, 0, 3}}) {
    t.samples.push_back({{}, {{"type", Type{f64, Shape(shape.begin(), shape.end()), {}}}}, {}});
  }
  t.reference = [](const Sample& s) {
    Extents shape;
    for (const Dim& d : s.attrs.get<Type>("type").shape) shape.push_back(d.size);
    int64_t base = 1;
    while (2 * base <= shape[0]) base *= 2;
    Tensor y(f64, shape);
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t k = i % shape[2], q = i / shape[2] % shape[1], h = i / shape[2] / shape[1];
      const double exponent =
          h < base ? 8.0 * static_cast<double>(h + 1) / static_cast<double>(base)
                   : 4.0 * static_cast<double>(2 * (h - base) + 1) / static_cast<double>(base);
      const auto distance = static_cast<double>(std::abs(k - (q + shape[2] - shape[1])));
      at(y, i) = -std::pow(2, -exponent) * distance;
    }
    return std::vector{y};
  };
  t.slack = 4;
  t.bad = {{{},
            {{"type", Type{f32, {2, 3}, {}}}},
            "alibi: attribute 'type' must be a float type [heads, Q, K], not f32[2, 3]"}};
  return t;
}

const AddOpTest kEmbedding(embedding_test());
const AddOpTest kEmbeddingPadding(embedding_padding_test());
const AddOpTest kEmbeddingBag(embedding_bag_test());
const AddOpTest kEmbeddingBagGrad(embedding_bag_grad_test());
const AddOpTest kApplyRotaryEmbedding(apply_rotary_embedding_test());
const AddOpTest kRotaryEmbedding(rotary_embedding_test());
const AddOpTest kAlibi(alibi_test());

}  // namespace
}  // namespace fluid::testing::embedding_samples
