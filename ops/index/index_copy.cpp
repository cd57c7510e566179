#include "ops/kernel_writer.h"

namespace fluid {
namespace {

std::vector<Type> infer_index_copy(const InferCtx& c) {
  const Type &x = c.in(0), &index = c.in(1), &source = c.in(2);
  c.require(x.shape.rank() == 2 && !x.shape.has_batch(),
            "x must be a matrix without the batch dimension, not " + x.str());
  c.require(index.dtype == i64 && index.shape.rank() == 1,
            "the index must be i64[n], not " + index.str());
  const Type expected{x.dtype, {index.shape[0], x.shape[1]}, {}};
  c.require(source == expected, "expects rows " + expected.str() + ", got " + source.str());
  return {x};
}

kir::Kernel index_copy_kernel(const LoopsCtx& c) {
  const Shape& shape = c.out_type().shape;
  const Expr rows = Expr::index(shape[0].size), width = Expr::index(shape[1].size);
  KernelWriter k(c);
  k.blocks(c.extent(c.in_type(1).shape[0]), [&](const Expr& n) {
    const Expr row = k.let(k.load(k.operand(1), n));
    const Expr in_range = scalar::logical_and(scalar::compare(ScalarOp::ge, row, Expr::index(0)),
                                              scalar::compare(ScalarOp::lt, row, rows));
    k.branch(in_range, [&] {
      k.vector_loop(Expr::index(0), width, [&](const Expr& i) {
        k.store(k.result(), row * width + i, k.load(k.operand(2), n * width + i));
      });
    });
  });
  return k.kernel();
}

}  // namespace

OpDef index_copy_op() {
  return OpDef{
      .name = "index_copy",
      .doc =
          "x with rows replaced by other rows, like torch.Tensor.index_copy_. An index out of "
          "range replaces nothing. The indices in range must differ. Runs in place, and its cost "
          "does not depend on the number of rows of x.",
      .inputs = {{"x", "matrix [V, D]"}, {"index", "i64 [n]"}, {"source", "x's dtype, [n, D]"}},
      .attrs = {},
      .outputs = {{"y", "x's type"}},
      .infer = infer_index_copy,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const auto width = static_cast<double>(size_of(c.in[0].dtype));
            return Cost{.bytes = 2 * c.numel_in(2) * width + 8 * c.numel_in(1)};
          },
      .in_place = {{.out = 0, .in = 0, .required = true}},
      .lower = Loops{index_copy_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
