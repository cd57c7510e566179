#pragma once

// Pieces that schedules are put together from.

#include "codegen/schedule_flat.h"

namespace fluid {

/// Appends a loop to `block` and returns its body, to append to.
kir::Block& add_loop(kir::Block& block, int64_t var, const Expr& begin, const Expr& end,
                     kir::For::Kind kind = kir::For::Kind::serial);
/// A loop of one iteration: gives `var` a value.
kir::Block& give(kir::Block& block, int64_t var, const Expr& value);
kir::Block& add_if(kir::Block& block, const Expr& condition);
/// Gives the variables the digits of `number`, each with how many it counts, the first fastest.
kir::Block& unpack(KernelBuilder& builder, const Expr& number,
                   const std::vector<std::pair<int64_t, Expr>>& digits, kir::Block& block);

/// Variables, and lets, that the expression depends on.
bool depends(const Expr& e, const std::function<bool(const Expr& leaf)>& leaf);

/// Replaces the largest parts of `exprs` worth keeping (loads, functions) whose variables and lets
/// are all allowed by `known` by Lets appended to `block`.
void hoist(KernelBuilder& builder, const std::vector<Expr*>& exprs,
           const std::function<bool(const Expr& leaf)>& known, kir::Block& block);

/// Names values that occur more than once below `exprs`, by Lets appended to `block`.
void share(KernelBuilder& builder, const std::vector<Expr*>& exprs, kir::Block& block);
/// `e` under a name, by a Let appended to `block`.
Expr name_value(KernelBuilder& builder, const Expr& e, kir::Block& block);
Expr let_node(int64_t id, DType dtype);

/// How well loads and stores at these offsets go along `var` as lanes: 1 each for stride 1, less
/// for others; and how many there are.
struct Fit {
  double good = 0;
  double all = 0;
};
Fit vector_fit(const KernelBuilder& builder, const FlatSink& sink, int64_t var);

/// The share of lanes that work when a loop of this extent runs as vectors.
double lane_use(const Dim& extent, int64_t lanes = kCpu.lanes);

/// A guess where the batch is unknown.
inline constexpr int64_t kNominalBatch = 64;
double nominal(const Dim& extent);
double nominal_points(const KernelBuilder& builder, const Vars& vars);
/// Scalar operations of one evaluation.
double operations(const FlatSink& sink);

/// Stores that set the error words of an input (1, the index) where an index is bad.
void emit_checks(const FlatSink& sink, kir::Block& block);

bool contains(const Vars& vars, int64_t v);
Vars without(const Vars& vars, const Vars& removed);
Expr min_index(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, int64_t n);
/// Product of the variables' extents.
Expr points(const KernelBuilder& builder, const Vars& vars);

/// Reads a reduction's accumulator (or, with `lanes`, its lanes' total) as `dtype`.
Expr read_acc(int64_t acc, DType dtype, const std::vector<Expr>& index, bool lanes);
/// As i64, the position that an argmax over values of dtype `values` found.
Expr read_position(int64_t acc, DType values, const std::vector<Expr>& index, bool lanes);

}  // namespace fluid
