#include "ops/reduce/variance.h"

#include "ops/elementwise.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// Bound of the correction, so that f64 represents it.
constexpr int64_t kMaxCorrection = int64_t{1} << 53;

struct Deviation {
  Value centred;  ///< x - mean(x), in the compute dtype
  Value divisor;  ///< max(0, n - correction), a scalar
};

Deviation deviation(Value x, const Attrs& attrs) {
  const DType wide = compute_dtype(x.dtype());
  const Ints axes = attrs.get<std::vector<int64_t>>("axes");
  Type reduced{wide, {}, {}};
  for (const int64_t axis : normalized_axes(axes, x.shape().size())) {
    reduced.shape.push_back(x.shape()[static_cast<size_t>(axis)]);
  }
  const Value count = internal::numel(*x.op()->graph(), {.of = reduced});
  const Value degrees = count - static_cast<double>(attrs.get<int64_t>("correction"));
  const Value given = cast(x, wide);
  return {given - mean(given, {.axes = axes, .keep_dims = true}),
          maximum(degrees, scalar_like(degrees, 0))};
}

}  // namespace

std::vector<AttrDef> variance_attrs() {
  std::vector<AttrDef> attrs = reduction_attrs();
  attrs.push_back({"correction", int64_t{1},
                   "subtracted from the number of elements in the divisor; 0: biased variance"});
  return attrs;
}

std::vector<Type> infer_variance(const InferCtx& c) {
  require_float(c, 0);
  const auto correction = c.attr<int64_t>("correction");
  c.require(correction >= -kMaxCorrection && correction <= kMaxCorrection,
            "attribute 'correction' must lie between " + std::to_string(-kMaxCorrection) + " and " +
                std::to_string(kMaxCorrection) + ", not be " + std::to_string(correction));
  return infer_reduction(c);
}

Value variance_of(const ExpandCtx& c) {
  const Deviation d = deviation(c.in(0), c.attrs());
  const SumAttrs along{.axes = c.attr<std::vector<int64_t>>("axes"),
                       .keep_dims = c.attr<bool>("keep_dims")};
  return sum(square(d.centred), along) / d.divisor;
}

Value scaled_deviation(const GradCtx& c) {
  const Deviation d = deviation(c.in(0), c.attrs());
  return d.centred / d.divisor;
}

}  // namespace fluid
