#include "ops/nn/avg_pool.h"
#include "ops/record.h"

namespace fluid {

OpDef avg_pool_grad_def(int dims) {
  const std::string pool = "avg_pool" + std::to_string(dims) + "d";
  return OpDef{
      .name = pool + "_grad",
      .doc = "Gradient of " + pool + " with respect to its input.",
      .inputs = {{"dy", "gradient of " + pool + "'s result"}},
      .attrs = avg_pool_attrs(dims, {{"input", Type{}, "type of " + pool + "'s input", true}}),
      .outputs = {{"dx", "of type `input`"}},
      .infer = [dims](const InferCtx& c) { return std::vector{pool_grad_type(c, dims)}; },
      .grad = GradFn([pool](const GradCtx& c) {
        Attrs attrs = c.attrs();
        attrs.erase("input");
        return record(*c.op().graph(), pool, {c.dout(0)}, attrs, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const WindowAxes window = pool_windows(c.attrs, c.out[0].shape);
            return Cost{.flops =
                            2 * c.numel_out() * static_cast<double>(covering_windows_of(window))};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const WindowAxes window = pool_windows(c.attrs(), c.out_type().shape);
                        const CoveringWindows covering = covering_windows(c, window);
                        std::vector<Expr> at = {c.out_var(0), c.out_var(1)};
                        at.insert(at.end(), covering.window.begin(), covering.window.end());
                        const Expr share = c.read_or(0, at, 0) /
                                           avg_pool_divisor(c, c.out_type(), covering.window);
                        return ReduceBody{covering.extents, select_if(covering.valid, share, 0)};
                      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

OpDef avg_pool2d_grad_op() { return avg_pool_grad_def(2); }

}  // namespace fluid
