#include "ops/nn/dropout.h"

#include "ir/text.h"
#include "ops/random/draw.h"
#include "ops/record.h"

namespace fluid {
namespace {

Expr dropped(const LowerCtx& c, size_t dims) {
  const Shape& x = c.in_type(0).shape;
  if (dims == 0) dims = x.size();
  const double p = c.attr<double>("p");
  Shape units(x.begin(), x.begin() + static_cast<ptrdiff_t>(dims));
  std::vector<Expr> unit = c.out_vars();
  unit.resize(dims);
  const Expr kept = c.in(0) * dropout_scale(p);
  return scalar::select(dropout_keep_condition(step_random_bits(c, 1, units, unit), p), kept,
                        Expr::constant(kept.dtype(), 0));
}

}  // namespace

OpDef dropout_def(std::string name, std::string doc, std::string x_doc, size_t dims) {
  return OpDef{
      .name = name,
      .doc = doc + " Identity in eval and predict.",
      .inputs = {{"x", x_doc}, {"rng", "i64[3]: seed, run counter, index of the first sample"}},
      .attrs = {{"p", 0.5, "probability that an element or channel is dropped"},
                {"stream", int64_t{-1}, "identifies the Philox random stream"}},
      .outputs = {{"y", "same type as x"}},
      .infer =
          [dims](const InferCtx& c) {
            const double p = c.attr<double>("p");
            c.require(is_float(c.in(0).dtype) && c.in(0).shape.size() >= dims,
                      "expects a float tensor of " + std::to_string(dims) +
                          " or more dimensions, got " + c.in(0).str());
            c.require(p >= 0 && p <= 1,
                      "attribute 'p' must lie between 0 and 1, not be " + ir::float_text(p));
            require_random_state(c, 1);
            return std::vector{c.in(0)};
          },
      .grad = GradFn([name](const GradCtx& c) {
        const Values dx =
            record(*c.op().graph(), name, {c.dout(0), c.in(1)}, c.attrs(), c.op().loc);
        return Values{dx[0], {}};
      }),
      .effects = Random{},
      .amp = {Amp::kFollow},
      .cost =
          [dims](const CostCtx& c) {
            const Shape& y = c.out[0].shape;
            double drawn = dims == 0 ? c.numel_out() : 1;
            for (size_t d = 0; d < dims; ++d) drawn *= static_cast<double>(y[d].size);
            return Cost{.flops = kFlopsPerDropoutDraw * drawn + 2 * c.numel_out()};
          },
      .in_place = {{.out = 0, .in = 0}},
      .lower = Map{[dims](const LowerCtx& c) { return std::vector{dropped(c, dims)}; }},
      .kernels = {},
      .version = 1,
      .inference = [](const ExpandCtx& c) { return Values{c.in(0)}; },
      .internal = true,
  };
}

OpDef dropout_op() {
  return dropout_def(
      "dropout", "Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p).",
      "float tensor", 0);
}

}  // namespace fluid
