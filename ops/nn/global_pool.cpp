#include "ops/nn/global_pool.h"

#include "ops/functions.h"

namespace fluid {
namespace {

Ints spatial_axes(Value x, const char* op, const Loc& loc) {
  if (!x) throw UserError(loc, std::string(op) + ": the input is an empty value");
  if (x.shape().rank() < 3) {
    throw UserError(loc, std::string(op) + ": the input is " + x.type().str() +
                             ", not [N, C, ...] with spatial dimensions");
  }
  Ints axes;
  for (int64_t d = 2; d < x.shape().rank(); ++d) axes.push_back(d);
  return axes;
}

}  // namespace

Value global_avg_pool(Value x, const Loc& loc) {
  return mean(x, {.axes = spatial_axes(x, "global_avg_pool", loc), .keep_dims = true}, loc);
}

Value global_max_pool(Value x, const Loc& loc) {
  return max(x, {.axes = spatial_axes(x, "global_max_pool", loc), .keep_dims = true}, loc);
}

Value global_lp_pool(Value x, double p, const Loc& loc) {
  Ints extents;
  for (const int64_t d : spatial_axes(x, "global_lp_pool", loc)) {
    extents.push_back(x.shape()[static_cast<size_t>(d)].size);
  }
  return lp_pool(x, {.kernel = extents, .p = p}, loc);
}

}  // namespace fluid
