#include "ops/shape/triangle.h"

#include "ops/elementwise.h"

namespace fluid {
namespace {

std::vector<Type> infer_triangle(const InferCtx& c) {
  const Shape& shape = c.in(0).shape;
  c.require(shape.rank() >= 2 && !shape[shape.size() - 1].batch && !shape[shape.size() - 2].batch,
            "the operand must be matrices [..., M, N] with constant M and N, not " + c.in(0).str());
  return {c.in(0)};
}

}  // namespace

OpDef triangle_def(std::string name, std::string doc, ScalarOp keep,
                   Value (*grad)(Value dy, int64_t diagonal)) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"x", "any tensor [..., M, N]"}},
      .attrs = {{"diagonal", int64_t{0},
                 "column minus row of the diagonal that bounds the triangle; 0: the main one"}},
      .outputs = {{"y", "like x"}},
      .infer = infer_triangle,
      .grad = GradFn([grad](const GradCtx& c) {
        return Values{grad(c.dout(0), c.attr<int64_t>("diagonal"))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = Map{[keep](const LowerCtx& c) {
        const Expr x = c.in(0);
        const size_t rank = c.out_type().shape.size();
        const Expr diagonal = c.out_var(rank - 1) - c.out_var(rank - 2);
        const Expr inside =
            scalar::compare(keep, diagonal, Expr::index(c.attr<int64_t>("diagonal")));
        return std::vector{scalar::select(inside, x, Expr::constant(x.dtype(), 0))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
