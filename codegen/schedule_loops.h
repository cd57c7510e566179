#pragma once

// Helper functions for schedules. They build loops and Lets, and estimate costs.

#include "codegen/schedule_flat.h"

namespace fluid {

/// Appends a loop to `block` and returns the loop's body.
kir::Block& add_loop(kir::Block& block, int64_t var, const Expr& begin, const Expr& end,
                     kir::For::Kind kind = kir::For::Kind::serial);
/// Binds `var` to `value` by a loop of one iteration. Returns the body of the loop.
kir::Block& bind_var(kir::Block& block, int64_t var, const Expr& value);
kir::Block& add_if(kir::Block& block, const Expr& condition);
/// Delinearizes `linear_index` into one index per dimension, and binds each index to its variable.
/// `dims`: (variable, extent) of each dimension, innermost first. Returns the block in which the
/// variables are bound.
kir::Block& delinearize(KernelBuilder& builder, const Expr& linear_index,
                        const std::vector<std::pair<int64_t, Expr>>& dims, kir::Block& block);

/// Whether `predicate` is true for any leaf of `e`.
bool any_leaf(const Expr& e, const std::function<bool(const Expr& leaf)>& predicate);
/// Whether `e` reads the variable `var`.
bool depends_on(const Expr& e, int64_t var);
/// Calls `visit` for each expression in `block` and its nested blocks.
void for_each_expr(const kir::Block& block, FunctionRef<void(const Expr&)> visit);
/// Returns the distinct loads in `e`.
std::vector<Expr> loads_of(const Expr& e);

/// Hoists loop-invariant subexpressions of `exprs` into Lets, which are appended to `block`. Hoists
/// only the largest subexpressions that contain a load or a costly function. A subexpression is
/// loop-invariant if `is_invariant` is true for all of its variables and Lets.
void hoist(KernelBuilder& builder, const std::vector<Expr*>& exprs,
           const std::function<bool(const Expr& leaf)>& is_invariant, kir::Block& block);

/// Replaces costly subexpressions that occur several times in `exprs` by Lets, which are appended
/// to `block`.
void eliminate_common_subexpressions(KernelBuilder& builder, const std::vector<Expr*>& exprs,
                                     kir::Block& block);
/// Appends a Let with value `e` to `block`. Returns the expression that reads the Let.
Expr append_let(KernelBuilder& builder, const Expr& e, kir::Block& block);
/// Returns an expression that reads the Let `id`.
Expr read_let(int64_t id, DType dtype);

/// Rates how well a root vectorizes along a variable. `accesses` is the weighted number of loads
/// and stores of the root. `score` is the same number with lower weights for accesses whose stride
/// is not 1.
struct VectorizationScore {
  double score = 0;
  double accesses = 0;
};
VectorizationScore vectorization_score(const KernelBuilder& builder, const FlatRoot& root,
                                       int64_t var);

/// Returns the average fraction of lanes in use in a vector loop of `extent` iterations.
double lane_utilization(const Dim& extent, int64_t lanes = kCpu.lanes);

/// Returns the value of `extent` at batch size kir::kNominalBatch.
double estimated_extent(const Dim& extent);
/// Returns the trip count of the loops over `vars` at batch size kir::kNominalBatch.
double estimated_trip_count(const KernelBuilder& builder, const Vars& vars);
/// Returns the approximate number of scalar operations in one evaluation of the body of the root.
double operation_count(const FlatRoot& root);

/// Emits stores that set the error words of an input to {1, index} if an index into this input is
/// out of range.
void emit_bounds_checks(const FlatRoot& root, kir::Block& block);

bool contains(const Vars& vars, int64_t v);
Vars without(const Vars& vars, const Vars& removed);
Expr min_index(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, int64_t n);
int64_t ceil_of(int64_t a, int64_t n);  ///< a / n, rounded up
/// Returns the trip count of the loops over `vars`, the product of their extents.
Expr trip_count(const KernelBuilder& builder, const Vars& vars);

/// Returns an expression that reads an accumulator as `dtype`. If `per_lane`, the accumulator has
/// one value per lane, and the expression reduces the lanes to one value.
Expr read_accumulator(int64_t accumulator_id, DType dtype, const std::vector<Expr>& index,
                      bool per_lane);
/// Returns an expression that reads the argmax index stored in an argmax accumulator, as i64.
/// `value_dtype` is the dtype of the values that the accumulator compares.
Expr read_argmax_index(int64_t accumulator_id, DType value_dtype, const std::vector<Expr>& index,
                       bool per_lane);

}  // namespace fluid
