#include "ops/elementwise.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns the shape of the slice of x that belongs to one segment id.
Shape slice_shape(const Shape& x, const Shape& ids) {
  return Shape(x.begin() + ids.rank(), x.end());
}

std::vector<Type> infer_segment_sum(const InferCtx& c) {
  require_float(c, 0);
  const Type &x = c.in(0), &ids = c.in(1);
  const int64_t segments = c.attr<int64_t>("segments");
  c.require(segments >= 0, "attribute 'segments' must not be negative");
  c.require(is_integer(ids.dtype) && ids.shape.rank() <= x.shape.rank() &&
                std::equal(ids.shape.begin(), ids.shape.end(), x.shape.begin()),
            "the segment ids must be an integer tensor whose shape starts that of " + x.str() +
                ", not " + ids.str());
  Shape shape = slice_shape(x.shape, ids.shape);
  shape.insert(shape.begin(), segments);
  return {Type{x.dtype, shape, {}}};
}

/// Slices whose segment id is out of range are dropped by the forward op, and have gradient 0.
Values segment_sum_grad(const GradCtx& c) {
  const Value dy = c.dout(0), ids = cast(c.in(1), i64);
  const int64_t segments = c.attr<int64_t>("segments");
  if (segments == 0) return {fill(*c.op().graph(), {.type = c.in(0).type()}, c.op().loc), {}};
  const Value inside = clip(ids, {.min = 0.0, .max = static_cast<double>(segments - 1)});
  const Value slices = gather(dy, inside);
  Shape per_slice = ids.shape();
  per_slice.resize(slices.shape().size(), 1);
  const Value kept = reshape(equal(inside, ids), per_slice);
  return {where(kept, slices, scalar_like(slices, 0)), {}};
}

}  // namespace

OpDef segment_sum_op() {
  return OpDef{
      .name = "segment_sum",
      .doc =
          "Sums of the slices of x that have one segment id, as unsorted_segment_sum of "
          "TensorFlow: "
          "y[s, k...] is the sum of x[i..., k...] over all i with ids[i...] = s. The ids need not "
          "be sorted. A slice whose id is out of range is dropped.",
      .inputs = {{"x", "float tensor"},
                 {"ids", "integer tensor; its shape is the beginning of x's shape"}},
      .attrs = {{"segments", int64_t{0}, "number of segments", true}},
      .outputs = {{"y", "x's dtype, [segments, k...]"}},
      .infer = infer_segment_sum,
      .grad = GradFn(segment_sum_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            return Cost{.flops = c.numel_out() == 0 ? 0 : c.numel_in(0) + c.numel_out()};
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return Values{internal::gather_grad(c.in(0), c.in(1), {.input = c.out_type(0)})};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
