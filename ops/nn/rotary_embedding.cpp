#include <cmath>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns the number of rotated features in the last dimension.
int64_t rotated_dims(const Attrs& attrs, const Shape& x) {
  const int64_t dims = attrs.get<int64_t>("dims");
  return dims == 0 ? x.back().size : dims;
}

std::vector<Type> infer_rotary(const InferCtx& c) {
  require_float(c, 0);
  const Type& x = c.in(0);
  c.require(x.shape.rank() >= 2 && !x.shape.back().batch,
            "the operand must be [..., T, D] with constant D, not " + x.str());
  require_finite(c, "theta");
  c.require(c.attr<double>("theta") > 0, "attribute 'theta' must be positive");
  const int64_t dims = rotated_dims(c.attrs(), x.shape);
  c.require(dims > 0 && dims % 2 == 0 && dims <= x.shape.back().size,
            "the number of rotated elements must be even, positive and at most D, not " +
                std::to_string(dims));
  if (!c.has(1)) {
    c.require(!x.shape[x.shape.size() - 2].batch,
              "needs positions: the length of " + x.str() + " is the batch dimension");
    return {x};
  }
  const Type& position = c.in(1);
  const Type rows{position.dtype, Shape(x.shape.begin(), x.shape.end() - 1), {}};
  const std::vector<Type> operands = {rows, position};
  c.require(is_integer(position.dtype) && position.shape.rank() >= 1,
            "the positions must be an integer tensor [..., T], not " + position.str());
  c.require(
      broadcast_shape(InferCtx("rotary_embedding", operands, c.attrs(), c.loc())) == rows.shape,
      "positions " + position.str() + " do not broadcast to " + rows.shape.str());
  return {x};
}

/// Cosines and sines of the angles position * theta^(-2 i / R). Their dtype is f32 or wider.
struct Rotation {
  Value cos, sin;

  template <class Ctx>
  explicit Rotation(const Ctx& c) {
    const Type& x = c.in(0).type();
    ir::Graph& graph = *c.op().graph();
    const DType dtype = compute_dtype(x.dtype);
    const int64_t dims = rotated_dims(c.attrs(), x.shape);
    const double theta = c.attrs().template get<double>("theta");
    const Type pairs{dtype, {dims / 2}, {}};
    const Value frequency = exp2(
        arange(graph, {.type = pairs, .step = -2 * std::log2(theta) / static_cast<double>(dims)}));
    const Type rows{dtype, {x.shape[x.shape.size() - 2]}, {}};
    const Value position = c.arity() > 1 ? cast(c.in(1), dtype) : arange(graph, {.type = rows});
    const Value angle = unsqueeze(position, {.axes = -1}) * frequency;
    cos = fluid::cos(angle);
    sin = fluid::sin(angle);
  }
};

}  // namespace

OpDef rotary_embedding_op() {
  return OpDef{
      .name = "rotary_embedding",
      .doc =
          "Rotary position embedding (RoFormer; Su et al., 2021): rotates pair i of the elements "
          "at "
          "position t by the angle t * theta^(-2 i / R), where R is the number of rotated "
          "elements. Angles are computed in f32 or wider.",
      .inputs = {{"x", "float [..., T, D], such as queries or keys"},
                 {.name = "position",
                  .doc = "integer [..., T], broadcast to x; omitted: 0, 1, ..., T - 1",
                  .optional = true}},
      .attrs = {{"theta", 10000.0, "base of the angles"},
                {"interleaved", false,
                 "true: pairs are neighbours (GPT-J); false: element i is paired with i + R / 2 "
                 "(Llama)"},
                {"dims", int64_t{0}, "R, the leading elements that are rotated; 0: all"}},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_rotary,
      .grad = GradFn([](const GradCtx& c) {
        const Rotation r(c);
        Values gradients(c.arity());
        gradients[0] = apply_rotary_embedding(c.dout(0), r.cos, -r.sin,
                                              {.interleaved = c.attr<bool>("interleaved")});
        return gradients;
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Shape& x = c.in[0].shape;
            const auto pairs = static_cast<double>(rotated_dims(c.attrs, x)) / 2;
            const double rows =
                c.in.size() > 1 ? c.numel_in(1) : static_cast<double>(x[x.size() - 2].size);
            return Cost{.flops = 4 * c.numel_out() + pairs * (12 + 21 * rows)};
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const Rotation r(c);
        return Values{apply_rotary_embedding(c.in(0), r.cos, r.sin,
                                             {.interleaved = c.attr<bool>("interleaved")})};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
