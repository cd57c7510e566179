#include "codegen/product_group.h"

#include <algorithm>
#include <limits>

#include "codegen/schedule_contraction.h"

namespace fluid {
namespace {

// Minimum fraction of lanes in use.
constexpr double kMinLanesInUse = 0.5;

bool is_masked(const Expr& load) { return load.args().size() > 1; }

/// Whether all results of the group are stored contiguously along `var`.
bool is_stored_contiguously(const ProductGroup& group, int64_t var) {
  const auto is_contiguous = [&](const auto& store) {
    const std::optional<Affine> affine = as_affine(store.second);
    return affine && affine->coefficient(var) == 1;
  };
  return std::ranges::all_of(group.roots, [&](const FlatRoot& root) {
    return std::ranges::all_of(root.stores, is_contiguous);
  });
}

/// Returns the operand that is contiguous along `column` if the other one does not depend on
/// `column`; else null.
const Expr* contiguous_operand(const std::vector<Expr>& loads, int64_t column) {
  for (const size_t i : {0, 1}) {
    if (stride_of(loads[i], column) == 1 && stride_of(loads[1 - i], column) == 0) return &loads[i];
  }
  return nullptr;
}

}  // namespace

int64_t stride_of(const Expr& load, int64_t var) {
  const std::optional<Affine> affine = as_affine(load.args()[0]);
  return affine ? affine->coefficient(var) : std::numeric_limits<int64_t>::max();
}

int64_t ProductGroup::lanes() const { return kir::kVectorBytes / size_of(accumulator_dtype()); }

bool ProductGroup::has_transposed_left() const { return row >= 0 && stride_of(left, row) == 1; }

std::optional<ProductGroup> match_product(KernelBuilder& b) {
  ProductGroup group;
  Vars rows;
  std::optional<std::vector<FlatRoot>> roots = match_sum_with_epilogue(b, rows);
  if (!roots) return std::nullopt;
  group.roots = *std::move(roots);
  const FlatRoot& sum = group.roots.front();
  const std::vector<Expr> loads = loads_of(sum.body);
  if (sum.reduce.size() != 1 || sum.body.op() != ScalarOp::product || loads.size() != 2 ||
      std::ranges::any_of(loads, is_masked))
    return std::nullopt;
  group.depth = sum.reduce.front();
  for (const int64_t v : sum.out) {
    if (lane_utilization(b.extent(v), group.lanes()) < kMinLanesInUse) continue;
    const Expr* right = contiguous_operand(loads, v);
    if (right == nullptr || (group.column >= 0 && !is_stored_contiguously(group, v))) continue;
    group.column = v;
    group.right = *right;
    group.left = right == &loads[0] ? loads[1] : loads[0];
  }
  if (group.column < 0) return std::nullopt;
  for (const int64_t v : sum.out) {
    if (depends_on(group.right.args()[0], v)) continue;
    const bool longest =
        group.row < 0 || estimated_extent(b.extent(v)) > estimated_extent(b.extent(group.row));
    if (longest) group.row = v;
  }
  group.outer = without(sum.out, {group.column, group.row});
  return group;
}

}  // namespace fluid
