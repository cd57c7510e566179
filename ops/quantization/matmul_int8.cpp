#include "ops/elementwise.h"
#include "ops/math/matmul.h"
#include "ops/quantization/quantization.h"

namespace fluid {

OpDef matmul_int8_op() {
  return OpDef{
      .name = "matmul_int8",
      .doc =
          "matmul with a matrix of i8. The sums are floats: those of integers are exact up to "
          "2^24, "
          "beyond that rounded.",
      .inputs = {{"a", "float, i8 or u8 [..., m, k]"}, {"b", "i8 [k, n]"}},
      .attrs = {{"transpose_b", false, "b is [n, k]"}},
      .outputs = {{"y", "[..., m, n], the dtype of a float a, else f32"}},
      .infer =
          [](const InferCtx& c) {
            const Type &a = c.in(0), &b = c.in(1);
            c.require((is_float(a.dtype) || is_8bit_integer(a.dtype)) && b.dtype == DType::i8,
                      "expects a matrix of floats, i8 or u8 and one of i8, got " + a.str() +
                          " and " + b.str());
            c.require(a.shape.rank() >= 2 && b.shape.rank() == 2,
                      "expects [..., m, k] and a matrix, got " + a.str() + " and " + b.str());
            const bool transpose = c.attr<bool>("transpose_b");
            const Dim &k = b.shape[transpose ? 1 : 0], &n = b.shape[transpose ? 0 : 1];
            c.require(a.shape.back() == k, "cannot multiply " + a.str() + " by " + b.str() +
                                               ": the inner extents are " + a.shape.back().str() +
                                               " and " + k.str());
            Type y{is_float(a.dtype) ? a.dtype : DType::f32, a.shape, {}};
            y.shape.back() = n;
            return std::vector{y};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost =
          [](const CostCtx& c) {
            const auto k = static_cast<double>(c.in[0].shape.back().size);
            return Cost{.flops = 2 * k * c.numel_out()};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        return matmul_body(c, false, c.attr<bool>("transpose_b"));
                      }},
      .kernels = {{KernelDevice::cpu, "onednn.matmul_int8"}},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
