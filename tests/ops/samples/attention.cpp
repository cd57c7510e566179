// Attention against its formula in double, score by score.

#include <cmath>
#include <limits>

#include "ops/random/philox.h"
#include "tests/support/op_harness.h"

namespace fluid::testing::attention_samples {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kSeed = 0x123456789, kRun = 7, kFirst = 1000003, kStream = 11;

/// Element of a tensor of rank 4 that broadcasts to the index.
double element(const Tensor& t, std::array<int64_t, 4> index) {
  int64_t offset = 0;
  const size_t rank = t.shape().size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = t.shape()[d];
    offset = offset * extent + (extent == 1 ? 0 : index[4 - rank + d]);
  }
  return t.at(offset);
}

/// Scores, statistics and results of attention on q, k, v of ranks 4.
struct Attention {
  const Tensor &q, &k, &v;
  const Tensor* mask = nullptr;
  bool causal = false;
  double scale = 0;
  double dropout = 0;
  int64_t first_sample = 0;  ///< index of the first sample in the whole data
  bool alibi = false;

  int64_t extent(const Tensor& t, size_t d) const { return t.shape()[d]; }
  int64_t group(int64_t h) const { return h / (extent(q, 1) / extent(k, 1)); }

  /// ALiBi's slope of a head, if the number of heads is a power of two.
  double slope(int64_t h) const {
    return std::exp2(-8 * static_cast<double>(h + 1) / static_cast<double>(extent(q, 1)));
  }

  double score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (causal && j > i) return -kInfinity;
    double dot = 0;
    for (int64_t d = 0; d < extent(q, 3); ++d) {
      dot += element(q, {b, h, i, d}) * element(k, {b, group(h), j, d});
    }
    dot *= scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(q, 3)));
    if (alibi)
      dot -= slope(h) * std::abs(static_cast<double>(j - (i + extent(k, 2) - extent(q, 2))));
    if (mask == nullptr) return dot;
    const double m = element(*mask, {b, h, i, j});
    return mask->dtype() != boolean ? dot + m : m != 0 ? dot : -kInfinity;
  }

  double logsumexp(int64_t b, int64_t h, int64_t i) const {
    long double total = 0;
    for (int64_t j = 0; j < extent(k, 2); ++j) total += std::exp(score(b, h, i, j));
    return total > 0 ? static_cast<double>(std::log(total)) : kInfinity;
  }

  /// Factor of a softmax weight: one number is drawn per element of [B, H, T, S].
  double dropout_factor(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (dropout == 0) return 1;
    const int64_t row = ((first_sample + b) * extent(q, 1) + h) * extent(q, 2) + i;
    const uint32_t bits = philox_bits(kSeed, kRun, kStream, row * extent(k, 2) + j);
    return bits >= std::ldexp(dropout, 32) ? 1 / (1 - dropout) : 0;
  }

  /// Calls visit(b, h, i, number of the query).
  void for_each_query(const std::function<void(int64_t, int64_t, int64_t, int64_t)>& visit) const {
    int64_t n = 0;
    for (int64_t b = 0; b < extent(q, 0); ++b) {
      for (int64_t h = 0; h < extent(q, 1); ++h) {
        for (int64_t i = 0; i < extent(q, 2); ++i) visit(b, h, i, n++);
      }
    }
  }

  std::vector<Tensor> forward() const {
    const int64_t depth = extent(v, 3);
    Tensor y(f64, {extent(q, 0), extent(q, 1), extent(q, 2), depth});
    Tensor statistics(f64, {extent(q, 0), extent(q, 1), extent(q, 2)});
    for_each_query([&](int64_t b, int64_t h, int64_t i, int64_t n) {
      at(statistics, n) = logsumexp(b, h, i);
      for (int64_t j = 0; j < extent(k, 2); ++j) {
        const double p =
            std::exp(score(b, h, i, j) - statistics.at(n)) * dropout_factor(b, h, i, j);
        for (int64_t e = 0; e < depth; ++e) {
          at(y, n * depth + e) += p * element(v, {b, group(h), j, e});
        }
      }
    });
    return {y, statistics};
  }

  /// dq, dk, dv, with the given row statistics.
  std::vector<Tensor> backward(const Tensor& dy, const Tensor& logsumexps,
                               const Tensor& delta) const {
    Tensor dq(f64, q.shape()), dk(f64, k.shape()), dv(f64, v.shape());
    const double factor = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(extent(q, 3)));
    for_each_query([&](int64_t b, int64_t h, int64_t i, int64_t n) {
      for (int64_t j = 0; j < extent(k, 2); ++j) {
        const double p = std::exp(score(b, h, i, j) - logsumexps.at(n));
        const double kept = dropout_factor(b, h, i, j);
        const int64_t key = (b * extent(k, 1) + group(h)) * extent(k, 2) + j;
        double dp = 0;
        for (int64_t e = 0; e < extent(v, 3); ++e) {
          dp += dy.at(n * extent(v, 3) + e) * v.at(key * extent(v, 3) + e);
          at(dv, key * extent(v, 3) + e) += p * kept * dy.at(n * extent(v, 3) + e);
        }
        const double ds = p * (kept * dp - delta.at(n)) * factor;
        for (int64_t d = 0; d < extent(q, 3); ++d) {
          at(dq, n * extent(q, 3) + d) += ds * k.at(key * extent(q, 3) + d);
          at(dk, key * extent(q, 3) + d) += ds * q.at(n * extent(q, 3) + d);
        }
      }
    });
    return {dq, dk, dv};
  }
};

struct Case {
  Extents q, k;
  int64_t value_depth;
  Attrs attrs;
  std::optional<Tensor> mask;
  bool batched = false;
};

/// Tiles of one and of several queries and keys, grouped heads, masks, another depth of the values.
std::vector<Case> cases() {
  return {{{1, 1, 1, 1}, {1, 1, 1, 1}, 1, {}, {}},
          {{2, 2, 5, 3}, {2, 2, 7, 3}, 4, {{"scale", 0.7}}, {}, true},
          {{1, 1, 33, 2}, {1, 1, 66, 2}, 1, {}, {}},
          {{1, 2, 34, 2}, {1, 1, 67, 2}, 1, {{"causal", true}}, {}},
          {{3, 2, 9, 3}, {3, 1, 9, 3}, 3, {{"causal", true}}, {}, true},
          {{2, 1, 3, 2}, {2, 1, 66, 2}, 2, {}, bool_tensor({2, 1, 3, 66}, 4)},
          {{1, 2, 4, 4}, {1, 2, 6, 4}, 4, {}, bool_tensor({4, 6}, 3)},
          {{2, 4, 5, 3}, {2, 2, 7, 3}, 4, {{"alibi", true}}, {}, true},
          {{1, 2, 34, 2}, {1, 1, 67, 2}, 1, {{"alibi", true}, {"causal", true}}, {}},
          {{1, 2, 4, 2}, {1, 2, 6, 2}, 2, {{"alibi", true}}, bool_tensor({4, 6}, 3)},
          {{2, 2, 0, 4}, {2, 2, 6, 4}, 4, {}, {}},
          {{0, 2, 3, 4}, {0, 2, 6, 4}, 4, {}, {}}};
}

/// Several tiles of queries and keys, samples that are not the first of the whole data, grouped
/// heads, masks, and everything dropped.
std::vector<Case> dropout_cases() {
  return {
      {{2, 2, 5, 3}, {2, 2, 7, 3}, 4, {{"dropout", 0.3}}, {}, true},
      {{2, 1, 3, 2}, {2, 1, 5, 2}, 1, {{"dropout", 0.5}}, {}},
      {{1, 2, 34, 2}, {1, 1, 67, 2}, 1, {{"causal", true}, {"dropout", 0.1}}, {}},
      {{3, 4, 4, 2}, {3, 2, 6, 2}, 2, {{"dropout", 0.2}}, bool_tensor({4, 6}, 3), true},
      {{1, 1, 3, 2}, {1, 1, 4, 2}, 2, {{"dropout", 1.0}}, {}},
      {{1, 2, 3, 2}, {1, 1, 4, 2}, 2, {{"causal", true}, {"scale", -0.5}, {"dropout", 0.2}}, {}},
      {{1, 2, 3, 2}, {1, 2, 4, 2}, 2, {{"dropout", 0.4}, {"alibi", true}}, {}},
      {{0, 2, 3, 4}, {0, 2, 6, 4}, 4, {{"dropout", 0.1}}, {}}};
}

/// Many queries, many keys: blocks own several strips of lanes. The last block is not full.
std::vector<Case> long_cases() {
  return {{{1, 1, 2080, 1}, {1, 1, 3, 1}, 1, {}, {}},
          {{1, 1, 3, 1}, {1, 1, 2080, 1}, 1, {}, {}},
          {{1, 1, 2080, 1}, {1, 1, 100, 1}, 1, {{"causal", true}}, {}},
          {{1, 1, 100, 1}, {1, 1, 2080, 1}, 1, {{"causal", true}}, {}}};
}

/// The samples of the kernels, which are too large for finite differences.
std::vector<Case> kernel_cases() {
  std::vector<Case> all = cases();
  for (const auto& more : {dropout_cases(), long_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// A mask that hides nothing.
Tensor all_visible() {
  Tensor mask(boolean, {1});
  *static_cast<uint8_t*>(mask.data()) = 1;
  return mask;
}

Tensor integers(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

/// The optional operands of a kernel. A random key follows a mask, which may hide nothing.
void add_options(Sample& s, const Case& c) {
  const bool drops = c.attrs.has("dropout");
  if (c.mask || drops) s.inputs.push_back(c.mask.value_or(all_visible()));
  if (drops) s.inputs.push_back(integers({kSeed, kRun, kFirst, kStream}));
}

Extents value_shape(const Case& c) { return {c.k[0], c.k[1], c.k[2], c.value_depth}; }

Attention attention_of(const Sample& s, const Tensor& q, const Tensor& k, const Tensor& v,
                       size_t mask) {
  return {q,
          k,
          v,
          s.inputs.size() > mask ? &s.inputs[mask] : nullptr,
          s.attrs.get_or("causal", false),
          s.attrs.get_or("scale", 0.0),
          s.attrs.get_or("dropout", 0.0),
          s.batch_dims.empty() ? 0 : kFirst,
          s.attrs.get_or("alibi", false)};
}

OpTest attention_test(const std::string& op, const std::vector<Case>& of = cases()) {
  OpTest t;
  t.op = op;
  for (const Case& c : of) {
    Sample s{{random_tensor(c.q, -1, 1), random_tensor(c.k, -1, 1, 1),
              random_tensor(value_shape(c), -1, 1, 2)},
             c.attrs,
             {}};
    add_options(s, c);
    if (c.batched) s.batch_dims = {0, 0, 0};
    t.samples.push_back(s);
  }
  t.reference = [](const Sample& s) {
    return attention_of(s, s.inputs[0], s.inputs[1], s.inputs[2], 3).forward();
  };
  t.slack = 4;
  return t;
}

bool has_several_tiles(const Sample& s) { return s.inputs[1].shape()[2] > 64; }

OpTest scaled_dot_product_attention_test() {
  OpTest t = attention_test("scaled_dot_product_attention");
  std::erase_if(t.samples, has_several_tiles);
  const Type q = {f32, {2, 4, 5, 8}, {}}, k = {f32, {2, 2, 7, 8}, {}};
  const std::string op = "scaled_dot_product_attention: ";
  t.bad = {
      {{{f32, {4, 5, 8}, {}}, k, k},
       {},
       op + "expects q, k and v of one float type [B, H, T, D], got f32[4, 5, 8]"},
      {{q, {f64, {2, 2, 7, 8}, {}}, k},
       {},
       op + "expects q, k and v of one float type [B, H, T, D], got f64[2, 2, 7, 8]"},
      {{q, {f32, {2, 2, 7, 9}, {}}, k},
       {},
       op + "k f32[2, 2, 7, 9] has another batch or depth than q f32[2, 4, 5, 8]"},
      {{q, k, {f32, {2, 2, 6, 8}, {}}},
       {},
       op + "v f32[2, 2, 6, 8] has other heads or keys than k f32[2, 2, 7, 8]"},
      {{q, {f32, {2, 3, 7, 8}, {}}, {f32, {2, 3, 7, 8}, {}}},
       {},
       op + "4 heads of q are no multiple of 3 heads of k"},
      {{q, k, k}, {{"scale", NAN}}, op + "attribute 'scale' must be finite, not nan"},
      {{q, {f32, {2, 2, 0, 8}, {}}, {f32, {2, 2, 0, 8}, {}}},
       {},
       op + "there are no keys in f32[2, 2, 0, 8]"},
      {{q, k, k, {f32, {5, 6}, {}}},
       {},
       op + "the mask must be bool or f32[2, 4, 5, 7], or broadcast to this shape, not f32[5, 6]"}};
  return t;
}

/// The samples without finite differences: those of many queries and keys, for which they take half
/// a minute (the tests of the gradient ops have them), and a mask of numbers, which gets no
/// gradient.
OpTest test_without_finite_differences() {
  OpTest t = attention_test("scaled_dot_product_attention");
  std::erase_if(t.samples, std::not_fn(has_several_tiles));
  t.samples.push_back(
      {{random_tensor({2, 2, 9, 4}), random_tensor({2, 2, 66, 4}, -1, 1, 1),
        random_tensor({2, 2, 66, 4}, -1, 1, 2), random_tensor({2, 1, 9, 66}, -1, 1, 4)},
       {},
       {}});
  t.gradient = false;
  return t;
}

OpTest dropout_test() {
  OpTest t;
  t.op = "scaled_dot_product_attention_dropout";
  for (const Case& c : dropout_cases()) {
    Sample s{{random_tensor(c.q, -1, 1), random_tensor(c.k, -1, 1, 1),
              random_tensor(value_shape(c), -1, 1, 2), integers({kSeed, kRun, kFirst})},
             c.attrs,
             {}};
    s.attrs.set("stream", kStream);
    if (c.mask) s.inputs.push_back(*c.mask);
    if (c.batched) s.batch_dims = {0, 0, 0};
    t.samples.push_back(s);
  }
  std::erase_if(t.samples, has_several_tiles);  // finite differences take too long
  t.reference = [](const Sample& s) {
    return attention_of(s, s.inputs[0], s.inputs[1], s.inputs[2], 4).forward();
  };
  t.slack = 4;
  const Type q = {f32, {2, 4, 5, 8}, {}}, k = {f32, {2, 2, 7, 8}, {}}, rng = {i64, {3}, {}};
  t.bad = {{{q, k, k, rng},
            {{"dropout", 1.5}},
            t.op + ": attribute 'dropout' must lie between 0 and 1, not be 1.5"},
           {{q, k, k, rng},
            {{"dropout", std::nan("")}},
            t.op + ": attribute 'dropout' must lie between 0 and 1, not be nan"},
           {{q, k, k, {i64, {2}, {}}},
            {},
            t.op + ": the random state must be i64[3] = {seed, run, first sample}, got i64[2]"},
           {{q, k, k, rng, {f32, {5, 6}, {}}},
            {},
            t.op + ": the mask must be bool or f32[2, 4, 5, 7], or broadcast to this shape, not "
                   "f32[5, 6]"}};
  return t;
}

OpTest attention_kernel_test() {
  OpTest t = attention_test("attention", kernel_cases());
  const Type q = {f32, {2, 2, 5, 4}, {}}, k = {f32, {2, 2, 7, 4}, {}};
  t.bad = {{{q, k, k, {boolean, {1}, {}}, {i64, {3}, {}}},
            {},
            "attention: the random key must be i64[4], got i64[3]"},
           {{q, k, k}, {{"dropout", 0.1}}, "attention: dropout needs a random key"}};
  return t;
}

/// The sums over dy that the gradients take besides dy: some finite numbers do.
std::vector<Tensor> gradient_inputs(const Case& c, const Attention& attention) {
  const Extents y = {c.q[0], c.q[1], c.q[2], c.value_depth};
  const Tensor dy = random_tensor(y, -1, 1, 5);
  return {dy, attention.forward()[1], random_tensor({c.q[0], c.q[1], c.q[2]}, -1, 1, 6)};
}

/// Cases that are small enough for finite differences of gradients. Dropout has no second gradient.
std::vector<Case> small_cases() {
  return {{{1, 1, 1, 1}, {1, 1, 1, 1}, 1, {}, {}},
          {{2, 2, 3, 2}, {2, 1, 4, 2}, 3, {{"causal", true}}, {}, true},
          {{1, 2, 3, 2}, {1, 1, 4, 2}, 2, {{"alibi", true}}, {}},
          {{1, 2, 2, 2}, {1, 2, 3, 2}, 2, {{"scale", 0.7}}, bool_tensor({2, 3}, 3)}};
}

OpTest attention_gradient_test(const std::string& op, const std::vector<Case>& cases,
                               bool gradient) {
  OpTest t;
  t.op = op;
  t.gradient = gradient;
  for (const Case& c : cases) {
    const Tensor q = random_tensor(c.q, -1, 1), k = random_tensor(c.k, -1, 1, 1);
    const Tensor v = random_tensor(value_shape(c), -1, 1, 2);
    Sample s{{q, k, v}, c.attrs, {}};
    const Attention attention{q,
                              k,
                              v,
                              c.mask ? &*c.mask : nullptr,
                              s.attrs.get_or("causal", false),
                              s.attrs.get_or("scale", 0.0),
                              0,
                              0,
                              s.attrs.get_or("alibi", false)};
    // Some finite statistics do, so they are those of attention without dropout.
    for (const Tensor& more : gradient_inputs(c, attention)) s.inputs.push_back(more);
    add_options(s, c);
    if (c.batched) s.batch_dims = std::vector<int>(6, 0);
    t.samples.push_back(s);
  }
  t.reference = [op](const Sample& s) {
    const std::vector<Tensor> all = attention_of(s, s.inputs[0], s.inputs[1], s.inputs[2], 6)
                                        .backward(s.inputs[3], s.inputs[4], s.inputs[5]);
    if (op == "attention_grad_query") return std::vector{all[0]};
    if (op == "attention_grad_key_value") return std::vector{all[1], all[2]};
    return all;
  };
  t.slack = 8;
  const Type q = {f32, {2, 2, 5, 3}, {}}, k = {f32, {2, 2, 7, 3}, {}}, row = {f32, {2, 2, 5}, {}};
  t.bad = {{{q, k, k, {f32, {2, 2, 5, 4}, {}}, row, row},
            {},
            op + ": expects dy f32[2, 2, 5, 3], got f32[2, 2, 5, 4]"}};
  return t;
}

const AddOpTest kScaledDotProduct(scaled_dot_product_attention_test());
const AddOpTest kWithoutFiniteDifferences(test_without_finite_differences());
const AddOpTest kDropout(dropout_test());
const AddOpTest kAttention(attention_kernel_test());
const AddOpTest kGrad(attention_gradient_test("attention_grad", kernel_cases(), false));
const AddOpTest kSecondGrad(attention_gradient_test("attention_grad", small_cases(), true));
const AddOpTest kGradQuery(attention_gradient_test("attention_grad_query", kernel_cases(), false));
const AddOpTest kSecondGradQuery(attention_gradient_test("attention_grad_query", small_cases(),
                                                         true));
const AddOpTest kGradKeyValue(attention_gradient_test("attention_grad_key_value", kernel_cases(),
                                                      false));
const AddOpTest kSecondGradKeyValue(attention_gradient_test("attention_grad_key_value",
                                                            small_cases(), true));

}  // namespace
}  // namespace fluid::testing::attention_samples
