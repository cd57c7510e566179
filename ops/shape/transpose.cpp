#include <algorithm>
#include <numeric>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns the permutation `perm`: dimension d of the result is dimension perm[d] of the operand.
Ints permutation(const Attrs& attrs, size_t rank) {
  Ints perm = attrs.get<std::vector<int64_t>>("perm");
  if (perm.empty()) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  return perm;
}

std::vector<Type> infer_transpose(const InferCtx& c) {
  const Shape& shape = c.in(0).shape;
  const Ints perm = permutation(c.attrs(), shape.size());
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Ints all(shape.size());
  std::iota(all.begin(), all.end(), 0);
  c.require(sorted == all, "perm must hold each of the " + std::to_string(shape.size()) +
                               " dimensions once, not be " + c.attr_text("perm"));
  Shape result;
  for (const int64_t d : perm) result.push_back(shape[static_cast<size_t>(d)]);
  return {{c.in(0).dtype, result}};
}

Values transpose_grad(const GradCtx& c) {
  const Ints perm = permutation(c.attrs(), c.in(0).shape().size());
  Ints inverse(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) {
    inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  }
  return {transpose(c.dout(0), {.perm = inverse})};
}

}  // namespace

OpDef transpose_op() {
  return OpDef{
      .name = "transpose",
      .doc = "Permutes the dimensions of x.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"perm", std::vector<int64_t>{},
                 "dimension d of y is dimension perm[d] of x; empty: reversed order"}},
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_transpose,
      .grad = GradFn(transpose_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Ints perm = permutation(c.attrs(), c.in_type(0).shape.size());
        std::vector<Expr> index(perm.size());
        for (size_t d = 0; d < perm.size(); ++d) {
          index[static_cast<size_t>(perm[d])] = c.out_var(d);
        }
        return std::vector{c.read(0, index)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
