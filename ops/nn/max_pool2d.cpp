#include <limits>

#include "ops/nn/pool.h"
#include "ops/record.h"

namespace fluid {

OpDef max_pool_def(int dims) {
  const std::string name = "max_pool" + std::to_string(dims) + "d";
  return OpDef{
      .name = name,
      .doc = "Max pooling, like torch.nn.functional." + name +
             ". The first of equal maxima in row-major order wins. Padding counts as minus "
             "infinity, and NaN as the largest value.",
      .inputs = {{"x", "float [N, C, " + spatial_names(dims) + "]"}},
      .attrs = pool_attrs(dims),
      .outputs = {{.name = "y", .doc = "[N, C, " + spatial_names(dims, "O") + "]"},
                  {.name = "position",
                   .doc = "argmax indices, row-major within the window: u8, or i32 if a window has "
                          "more than 256 taps; 0 if all its elements are minus infinity",
                   .auxiliary = true}},
      .infer =
          [dims](const InferCtx& c) {
            const Type y = pool_type(c, c.in(0), dims);
            const int64_t taps = taps_of(pool_windows(c.attrs(), c.in(0).shape));
            return std::vector{y, Type{argmax_dtype(taps), y.shape, {}}};
          },
      .grad = GradFn([name](const GradCtx& c) {
        Attrs attrs = c.attrs();
        attrs.set("input", c.in(0).type());
        return record(*c.op().graph(), name + "_grad", {c.dout(0), c.out(1)}, attrs, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const WindowAxes window = pool_windows(c.attrs, c.in[0].shape);
            return Cost{.flops = c.numel_out() * static_cast<double>(taps_of(window))};
          },
      .in_place = {},
      .lower = Reduce{Combine::argmax,
                      [](const LowerCtx& c) {
                        const WindowAxes window = pool_windows(c.attrs(), c.in_type(0).shape);
                        std::vector<Dim> extents;
                        for (const WindowAxis& axis : window) extents.emplace_back(axis.kernel);
                        constexpr double kLowest = -std::numeric_limits<double>::infinity();
                        return ReduceBody{
                            extents,
                            c.read_or(0, window_element(c, window, c.out_var(1)), kLowest)};
                      }},
      .kernels = {},
      .version = 1,
  };
}

OpDef max_pool2d_op() { return max_pool_def(2); }

}  // namespace fluid
