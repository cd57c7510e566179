// Ops that contract dimensions, and ops that move windows, against loops over their definitions.

#include <algorithm>
#include <map>

#include "tests/support/op_harness.h"

namespace fluid::testing::einsum_samples {
namespace {

/// Sums over all letters of `terms` (one letter per dimension, no ellipsis) by brute force.
Tensor contracted(const std::vector<Tensor>& inputs, const std::vector<std::string>& terms,
                  const std::string& result) {
  std::map<char, int64_t> extents, at_letter;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < terms[i].size(); ++d) {
      int64_t& extent = extents.try_emplace(terms[i][d], 1).first->second;
      if (inputs[i].shape()[d] != 1) extent = inputs[i].shape()[d];
    }
  }
  const auto offset = [&](const std::string& term, const Extents& shape) {
    int64_t place = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      place = place * shape[d] + (shape[d] == 1 ? 0 : at_letter.at(term[d]));
    }
    return place;
  };
  Extents shape;
  for (const char ch : result) shape.push_back(extents.at(ch));
  Tensor y(f64, shape);
  int64_t points = 1;
  for (const auto& [letter, extent] : extents) points *= extent;
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (const auto& [letter, extent] : extents) {
      at_letter[letter] = rest % extent;
      rest /= extent;
    }
    double product = 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      product *= inputs[i].at(offset(terms[i], inputs[i].shape()));
    }
    at(y, offset(result, shape)) += product;
  }
  return y;
}

struct EinsumCase {
  std::string equation;
  std::vector<std::string> terms;  ///< the operands with letters for the ellipsis, then the result
  std::vector<Extents> shapes;
  std::vector<int> batch = {};
};

std::vector<EinsumCase> einsum_cases() {
  return {
      {"ij,jk->ik", {"ij", "jk", "ik"}, {{2, 3}, {3, 5}}},
      {"ij, jk", {"ij", "jk", "ik"}, {{2, 3}, {3, 1}}},
      {"ba,cb", {"ba", "cb", "ac"}, {{3, 2}, {2, 3}}},
      {"bij,bjk->bik", {"bij", "bjk", "bik"}, {{3, 2, 5}, {3, 5, 1}}, {0, 0}},
      {"ni,nj->ij", {"ni", "nj", "ij"}, {{5, 2}, {5, 3}}, {0, 0}},
      {"qd,kd->kq", {"qd", "kd", "kq"}, {{5, 3}, {2, 3}}, {0, -1}},
      {"kd,qd->kq", {"kd", "qd", "kq"}, {{2, 3}, {5, 3}}, {-1, 0}},
      {"bhqd,bhkd->bhqk", {"bhqd", "bhkd", "bhqk"}, {{2, 2, 3, 2}, {2, 2, 2, 2}}},
      {"...ij,...jk->...ik", {"abij", "bjk", "abik"}, {{2, 3, 1, 2}, {3, 2, 2}}},
      {"...i,...i", {"ai", "ai", "a"}, {{2, 3}, {1, 3}}},
      {"i,j->ij", {"i", "j", "ij"}, {{3}, {2}}},
      {"ij,ij->", {"ij", "ij", ""}, {{2, 3}, {2, 3}}},
      {"ij,ij->ji", {"ij", "ij", "ji"}, {{2, 3}, {2, 1}}},
      {"ij,kj->ik", {"ij", "kj", "ik"}, {{2, 3}, {2, 1}}},
      {"ii->i", {"ii", "i"}, {{3, 3}}},
      {"...ii->...i", {"aii", "ai"}, {{2, 3, 3}}},
      {"ii", {"ii", ""}, {{3, 3}}},
      {"iij,ijk->ik", {"iij", "ijk", "ik"}, {{2, 2, 3}, {2, 3, 2}}},
      {"ij->ji", {"ij", "ji"}, {{2, 3}}},
      {"ijk->j", {"ijk", "j"}, {{2, 3, 2}}},
      {"->", {"", ""}, {{}}},
      {"ij,jk,kl->il", {"ij", "jk", "kl", "il"}, {{2, 3}, {3, 2}, {2, 3}}},
      {"ni,oij,nj->no", {"ni", "oij", "nj", "no"}, {{3, 2}, {2, 2, 3}, {3, 3}}, {0, -1, 0}},
      {"ij,jk->ik", {"ij", "jk", "ik"}, {{2, 0}, {0, 3}}},
      {"ij,jk->ik", {"ij", "jk", "ik"}, {{0, 16}, {16, 16}}},
      {"bi,bj->ij", {"bi", "bj", "ij"}, {{0, 16}, {0, 16}}},
      {"...a->...", {"ba", "b"}, {{2, 3}}},
  };
}

OpTest einsum_test() {
  OpTest t;
  t.op = "einsum";
  for (const EinsumCase& c : einsum_cases()) {
    Sample s{{}, {{"equation", c.equation}}, c.batch};
    for (const Extents& shape : c.shapes) {
      s.inputs.push_back(random_tensor(shape, -2, 2, static_cast<int>(s.inputs.size())));
    }
    t.samples.push_back(s);
  }
  t.reference = [](const Sample& s) {
    const auto equation = s.attrs.get<std::string>("equation");
    for (const EinsumCase& c : einsum_cases()) {
      const bool same = c.equation == equation && c.shapes.size() == s.inputs.size() &&
                        std::ranges::equal(c.shapes, s.inputs, {}, {}, &Tensor::shape);
      if (!same) continue;
      std::vector<std::string> terms = c.terms;
      terms.pop_back();
      return std::vector{contracted(s.inputs, terms, c.terms.back())};
    }
    return std::vector<Tensor>{};
  };
  t.slack = 8;
  const Type x = {f32, {2, 3}, {}};
  const auto bad = [&](const std::string& equation, std::vector<Type> operands,
                       const std::string& message) {
    t.bad.push_back({std::move(operands), {{"equation", equation}}, "einsum: " + message});
  };
  bad("i1->i", {x}, "\"i1\" must hold letters and at most one ellipsis");
  bad("......->", {x}, "\"......\" must hold letters and at most one ellipsis");
  bad("ij,jk->ik", {x}, "\"ij,jk->ik\" has 2 terms for 1 operands");
  bad("ijk->i", {x}, "\"ijk\" does not fit to [2, 3]");
  bad("ij,jk->ik", {x, x}, "letter 'j' has the extents 3 and 2");
  bad("ii->i", {x}, "a repeated letter 'i' requires equal constant extents, not those of [2, 3]");
  bad("ij->ik", {x}, "letter 'k' of the result must occur once there, and in an operand");
  bad("ij->ii", {x}, "letter 'i' of the result must occur once there, and in an operand");
  bad("qd,kd->qk", {{f32, {kBatch, 3}, {}}, {f32, {kBatch, 3}, {}}},
      "\"qd,kd->qk\" has two letters with the batch dimension");
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  bad(letters + "...->", {{f32, Shape(53, Dim(1)), {}}},
      "the operands have more than 52 dimensions of different letters");
  return t;
}

OpTest bilinear_test() {
  OpTest t;
  t.op = "bilinear";
  t.samples = {
      {{random_tensor({3, 2}), random_tensor({3, 5}), random_tensor({2, 2, 5})}, {}, {}},
      {{random_tensor({3, 2}), random_tensor({3, 1}), random_tensor({3, 2, 1}), random_tensor({3})},
       {},
       {0, 0}},
      {{random_tensor({2, 2, 2}), random_tensor({2, 2, 3}), random_tensor({1, 2, 3}),
        random_tensor({1})},
       {},
       {}},
      {{random_tensor({2}), random_tensor({3}), random_tensor({2, 2, 3})}, {}, {}},
      {{random_tensor({0, 2}), random_tensor({0, 3}), random_tensor({2, 2, 3})}, {}, {}}};
  t.reference = [](const Sample& s) {
    const std::string outer = std::string("ab").substr(0, s.inputs[0].shape().size() - 1);
    const std::vector<Tensor> factors(s.inputs.begin(), s.inputs.begin() + 3);
    Tensor y = contracted(factors, {outer + "i", outer + "j", "oij"}, outer + "o");
    const int64_t units = s.inputs[2].shape()[0];
    for (int64_t i = 0; s.inputs.size() > 3 && i < y.numel(); ++i) {
      at(y, i) += s.inputs[3].at(i % units);
    }
    return std::vector{y};
  };
  t.slack = 8;
  const Type a = {f32, {4, 2}, {}}, b = {f32, {4, 3}, {}}, w = {f32, {5, 2, 3}, {}};
  t.bad = {
      {{a, {f32, {2, 3}, {}}, w},
       {},
       "bilinear: operands f32[4, 2] and f32[2, 3] differ before the last dimension"},
      {{a, b, {f32, {5, 3, 2}, {}}}, {}, "bilinear: expects weights [O, 2, 3], got f32[5, 3, 2]"},
      {{a, b, w, {f32, {4}, {}}}, {}, "bilinear: expects a bias [5], got f32[4]"}};
  return t;
}

/// The attributes of a window: kernel, stride, padding before and after, dilation, per axis.
struct WindowCase {
  Extents x, kernel, stride, padding, dilation;
  Attrs attrs() const {
    return {{"kernel", kernel}, {"stride", stride}, {"padding", padding}, {"dilation", dilation}};
  }
  std::vector<int> batch = {};
};

const std::vector<WindowCase>& window_cases() {
  static const std::vector<WindowCase> cases = {
      {{1, 2, 3, 4}, {2, 2}, {1}, {0}, {1}},       {{2, 1, 5, 3}, {3, 2}, {2, 1}, {1}, {1}, {0}},
      {{1, 2, 5, 4}, {2}, {1, 2}, {1, 0}, {2, 1}}, {{1, 1, 3, 2}, {2}, {3}, {1, 0, 2, 1}, {1}},
      {{1, 1, 5, 5}, {1}, {2}, {0}, {1}},          {{0, 1, 3, 3}, {2}, {1}, {0}, {1}},
  };
  return cases;
}

/// Calls `visit` with the offset of a pixel and the offset of the column element that shows it.
/// Returns the shape of the columns.
Extents for_each_tap(const Attrs& attrs, const Extents& x,
                     const std::function<void(int64_t pixel, int64_t element)>& visit) {
  const auto list = [&](const char* name, size_t axis) {
    const auto& all = attrs.get<Extents>(name);
    return all.size() == 1 ? all[0] : all[axis];
  };
  Extents count, kernel = {list("kernel", 0), list("kernel", 1)};
  const size_t sides = attrs.get<Extents>("padding").size();
  for (size_t a = 0; a < 2; ++a) {
    const int64_t after = list("padding", sides == 4 ? a + 2 : a);
    const int64_t reach = list("dilation", a) * (kernel[a] - 1) + 1;
    count.push_back((x[a + 2] + list("padding", a) + after - reach) / list("stride", a) + 1);
  }
  Extents columns = {x[0], x[1] * kernel[0] * kernel[1], count[0] * count[1]};
  for (int64_t e = 0; e < numel_of(columns); ++e) {
    const int64_t window = e % columns[2], row = e / columns[2] % columns[1];
    const int64_t sample = e / columns[2] / columns[1];
    const int64_t tap = row % (kernel[0] * kernel[1]), channel = row / (kernel[0] * kernel[1]);
    const int64_t y = window / count[1] * list("stride", 0) +
                      tap / kernel[1] * list("dilation", 0) - list("padding", 0);
    const int64_t at_x = window % count[1] * list("stride", 1) +
                         tap % kernel[1] * list("dilation", 1) - list("padding", 1);
    const bool inside = y >= 0 && y < x[2] && at_x >= 0 && at_x < x[3];
    if (inside) visit(((sample * x[1] + channel) * x[2] + y) * x[3] + at_x, e);
  }
  return columns;
}

OpTest unfold_test() {
  OpTest t;
  t.op = "unfold";
  for (const WindowCase& c : window_cases()) {
    t.samples.push_back({{random_tensor(c.x)}, c.attrs(), c.batch});
  }
  t.reference = [](const Sample& s) {
    const Tensor& x = s.inputs[0];
    Tensor y(f64, for_each_tap(s.attrs, x.shape(), [](int64_t, int64_t) {}));
    for_each_tap(s.attrs, x.shape(), [&](int64_t pixel, int64_t e) { at(y, e) = x.at(pixel); });
    return std::vector{y};
  };
  const Attrs attrs = {{"kernel", Extents{2}}};
  t.bad = {{{{f32, {2, 3, 4}, {}}},
            attrs,
            "unfold: expects a float tensor [N, C, H, W], got f32[2, 3, 4]"},
           {{{f32, {2, 3, 1, 4}, {}}},
            attrs,
            "unfold: a window that reaches over 2 x 2 elements does not fit into the padded input "
            "[2, 3, 1, 4]"}};
  return t;
}

OpTest fold_test() {
  OpTest t;
  t.op = "fold";
  for (const WindowCase& c : window_cases()) {
    const Extents columns = for_each_tap(c.attrs(), c.x, [](int64_t, int64_t) {});
    Attrs attrs = c.attrs();
    attrs.set("output", Extents{c.x[2], c.x[3]});
    t.samples.push_back({{random_tensor(columns)}, attrs, c.batch});
  }
  t.reference = [](const Sample& s) {
    const Tensor& columns = s.inputs[0];
    const auto &output = s.attrs.get<Extents>("output"), &kernel = s.attrs.get<Extents>("kernel");
    const int64_t taps = kernel[0] * kernel.back();
    const Extents shape = {columns.shape()[0], columns.shape()[1] / taps, output[0], output[1]};
    Tensor y(f64, shape);
    for_each_tap(s.attrs, shape, [&](int64_t pixel, int64_t e) { at(y, pixel) += columns.at(e); });
    return std::vector{y};
  };
  t.slack = 4;
  const Attrs attrs = {{"kernel", Extents{2}}, {"output", Extents{3, 3}}};
  t.bad = {{{{f32, {2, 6, 4}, {}}}, attrs, "fold: expects [N, C * 4, windows], got f32[2, 6, 4]"},
           {{{f32, {2, 8, 5}, {}}},
            attrs,
            "fold: expects f32[2, 8, 4] for a result [2, 2, 3, 3], got f32[2, 8, 5]"},
           {{{f32, {2, 8, 4}, {}}},
            {{"kernel", Extents{2}}, {"output", Extents{3}}},
            "fold: attribute 'output' takes a height and a width"},
           {{{i64, {2, 8, 4}, {}}},
            attrs,
            "fold: the operand must be a float tensor, not i64[2, 8, 4]"}};
  return t;
}

const AddOpTest kEinsum(einsum_test());
const AddOpTest kBilinear(bilinear_test());
const AddOpTest kUnfold(unfold_test());
const AddOpTest kFold(fold_test());

}  // namespace
}  // namespace fluid::testing::einsum_samples
