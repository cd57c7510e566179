#pragma once

// Row-wise schedule of one GroupPart: a loop over the rows of the part, divided into blocks.

#include <list>

#include "codegen/schedule_loops.h"

namespace fluid {

/// Resolves a Let that reads a reduction of the same row, for flatten().
Expr row_local(const Expr& let);

/// Buffers for the partial results of a reduction over rows. Each block stores one partial result
/// per element of the result. Kernel::finish combines the partial results of all blocks.
struct PartialResults {
  const FlatRoot* root = nullptr;
  int64_t buffer = 0;
  int64_t argmax_indices = -1;  ///< index of the buffer of argmax indices; -1: not an argmax
  bool block_major = false;     ///< whether the layout is [blocks, results], not [results, blocks]
  int64_t stride = 0;  ///< distance between adjacent results in the layout [results, blocks]
};

struct SweepOptions {
  bool may_vectorize_rows = true;  ///< whether a row variable may be vectorized
};

class Sweep {
 public:
  Sweep(KernelBuilder& builder, const GroupPart& part);
  /// Schedules `roots`. All roots have the row variables `rows`.
  Sweep(KernelBuilder& builder, std::vector<FlatRoot> roots, Vars rows,
        const SweepOptions& options = {});

  Expr blocks() const { return blocks_; }
  double operations_per_block() const { return operations_per_block_; }
  /// Emits the code of the block with index `block_index` into `out`.
  void emit(const Expr& block_index, kir::Block& out);
  const std::list<PartialResults>& partials() const { return partials_; }

 private:
  /// Roots of one stage that share a loop nest, which runs once for each row.
  struct LoopNest {
    Vars outer;  ///< result variables whose loops enclose the accumulators
    Vars inner;  ///< all other variables except row variables
    /// Number of leading `inner` variables that index accumulators in memory.
    size_t result_dims = 0;
    /// Whether the accumulators form an array, indexed by loop variables of the result.
    bool array = false;
    std::vector<FlatRoot*> roots;
    int64_t vector = -1;  ///< vectorized variable in `outer` or `inner`; -1: none
  };
  struct RootAccumulator {
    int64_t accumulator_id = 0;  ///< id of the accumulator, see kir::Accumulator
    bool per_lane = false;       ///< whether the accumulator has one value per lane
  };

  void make_nests();
  LoopNest& find_or_add_nest(FlatRoot& root);
  void choose_vector_vars();
  void choose_interleaved();
  void choose_register_partials();
  int64_t vector_count(int64_t var) const;
  void partition_rows();
  void find_partial_results();
  double operations_per_row() const;

  Expr items_per_block(double operations_per_item, double min_items, bool vector);
  void init_partial_results(const Expr& block_index, kir::Block& out);
  void store_partial_results(const Expr& block_index, kir::Block& out);
  void store_register_partials(const PartialResults& partial, const Expr& block_index,
                               kir::Block& out);
  // Functions named emit_..._loops append loops to `out` and return the body of the innermost one.
  kir::Block& emit_row_loops(const Expr& block_index, kir::Block& out);
  void emit_row(kir::Block& out);
  bool rows_are_innermost() const;
  kir::Block& emit_outer_loops(const LoopNest& nest, kir::Block& out);
  void emit_nest(LoopNest nest, kir::Block& out);
  void emit_loop_body(const LoopNest& nest, std::vector<FlatRoot> roots, const Expr& vector,
                      kir::Block& out);
  void for_each_vector(int64_t var, kir::Block& out,
                       const std::function<void(const Expr& vector, kir::Block& loop)>& body);
  void emit_reduction_results(const FlatRoot& root, kir::Block& out);
  kir::Block& emit_nest_loops(const LoopNest& nest, const Vars& vars, kir::Block& out);
  Vars vars_to_flatten(const LoopNest& nest, const Vars& vars) const;
  double max_unrolled(const LoopNest& nest) const;
  kir::Block& emit_flattened_loop(int64_t fastest, const Vars& others, kir::Block& out);
  void declare_accumulator(const FlatRoot& root, bool per_lane, kir::Block& out);
  void accumulate(const LoopNest& nest, const FlatRoot& root, const Expr& value, const Expr& vector,
                  kir::Block& out);
  const PartialResults* partial_results_of(const FlatRoot& root) const;
  void for_each_result(const FlatRoot& root, kir::Block& out,
                       const std::function<void(kir::Block&)>& body);

  KernelBuilder& b_;
  std::vector<FlatRoot> roots_;
  Vars rows_;
  SweepOptions options_;
  std::vector<std::vector<LoopNest>> stages_;
  int64_t row_vector_ = -1;  ///< vectorized row variable; -1: none
  /// Whether the loop over the vectorized row variable is inside (true) or around (false) the loops
  /// over the results of a row.
  bool innermost_rows_ = false;
  Expr row_begin_, row_end_;  ///< range of the loop over the vectorized row variable
  /// A short row variable whose loop is unrolled inside the vectorized row loop, to interleave the
  /// stores; -1: none.
  int64_t interleaved_ = -1;
  /// Whether a block accumulates its block-major partial results in registers, not in their buffer.
  bool in_registers_ = false;
  Vars prefix_;        ///< leading row variables, whose iterations are divided among the blocks
  int64_t chunk_ = 0;  ///< chunk size; 0: the last row variable is not divided into chunks
  Expr item_count_;    ///< number of iterations of the loops over `prefix_` and over chunks
  Expr items_per_block_;
  Expr blocks_;
  int64_t max_blocks_ = 0;  ///< maximum number of blocks, if there are partial results, else 0
  double operations_per_block_ = 0;
  std::list<PartialResults> partials_;
  std::map<int, RootAccumulator> accs_;  ///< root id -> accumulator
  Expr block_index_;
};

/// Emits the builder's kernel: the row loops of all GroupParts, then Kernel::finish.
void emit_sweeps(KernelBuilder& builder);

}  // namespace fluid
