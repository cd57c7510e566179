#include "ops/index_range.h"

#include <optional>

#include "ops/group.h"

namespace fluid {

Expr in_range(const Expr& index, const Dim& extent, const std::vector<Dim>& extents) {
  const Expr always = Expr::constant(boolean, 1);
  const Expr low = scalar::compare(ScalarOp::ge, index, Expr::index(0));
  const Expr high = scalar::compare(ScalarOp::lt, index, extent_expr(extent));
  const std::optional<Affine> affine = as_affine(index);
  if (!affine) return scalar::logical_and(low, high);
  if (affine->terms.size() == 1 && affine->terms[0].second == 1 && affine->offset == 0 &&
      extents[static_cast<size_t>(affine->terms[0].first)] == extent) {
    return always;
  }
  int64_t least = affine->offset;
  int64_t most = affine->offset;
  bool bounded_below = true;
  bool bounded_above = !extent.batch;
  for (const auto& [var, coef] : affine->terms) {
    const Dim& d = extents[static_cast<size_t>(var)];
    if (d.batch) (coef > 0 ? bounded_above : bounded_below) = false;
    (coef > 0 ? most : least) += coef * (d.size - 1);
  }
  return scalar::logical_and(bounded_below && least >= 0 ? always : low,
                             bounded_above && most < extent.size ? always : high);
}

}  // namespace fluid
