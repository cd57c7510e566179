#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_bilinear(const InferCtx& c) {
  for (size_t i = 0; i < c.arity(); ++i) require_float(c, i);
  require_same_dtype(c);
  const Shape &a = c.in(0).shape, &b = c.in(1).shape, &w = c.in(2).shape;
  const bool fit =
      !a.empty() && a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
  c.require(fit, "operands " + c.in(0).str() + " and " + c.in(1).str() +
                     " differ before the last dimension");
  c.require(
      w.size() == 3 && !w.has_batch() && w[1] == a.back() && w[2] == b.back(),
      "expects weights [O, " + a.back().str() + ", " + b.back().str() + "], got " + c.in(2).str());
  c.require(!c.has(3) || c.in(3).shape == Shape{w[0]},
            "expects a bias [" + w[0].str() + "], got " + (c.has(3) ? c.in(3).str() : ""));
  Shape shape = a;
  shape.back() = w[0];
  return {Type{c.in(0).dtype, shape, {}}};
}

Values bilinear_grad(const GradCtx& c) {
  const Value a = c.in(0), b = c.in(1), w = c.in(2), dy = c.dout(0);
  Values gradients = {einsum({dy, w, b}, {.equation = "...o,oij,...j->...i"}),
                      einsum({dy, w, a}, {.equation = "...o,oij,...i->...j"}),
                      einsum({dy, a, b}, {.equation = "...o,...i,...j->oij"})};
  if (c.arity() > 3) gradients.push_back(sum_to(dy, c.in(3).shape()));
  return gradients;
}

}  // namespace

OpDef bilinear_op() {
  return OpDef{
      .name = "bilinear",
      .doc =
          "y[..., o] = sum of a[..., i] * w[o, i, j] * b[..., j] over i and j, plus bias[o], like "
          "torch.nn.functional.bilinear.",
      .inputs = {{"a", "float [..., I]"},
                 {"b", "same dtype, [..., J]"},
                 {"w", "same dtype, [O, I, J]"},
                 {.name = "bias", .doc = "same dtype, [O]", .optional = true}},
      .attrs = {},
      .outputs = {{"y", "[..., O]"}},
      .infer = infer_bilinear,
      .grad = GradFn(bilinear_grad),
      .effects = Pure{},
      .amp = Amp::kHalf,
      .cost =
          [](const CostCtx& c) {
            const double per_output = 2 * static_cast<double>(c.in[0].shape.back().size) + 2;
            return Cost{.flops = c.numel_out() * static_cast<double>(c.in[1].shape.back().size) *
                                 per_output};
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const Value y = einsum({c.in(0), c.in(2), c.in(1)}, {.equation = "...i,oij,...j->...o"});
        return Values{c.arity() > 3 ? y + c.in(3) : y};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
