#pragma once

// CPU schedule for matrix products and convolutions: keeps a tile of accumulators in registers, and
// makes the reduction loops innermost.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// Matches a group that is a contraction with an elementwise epilogue: one sum of at least
/// kMinContractionTerms products, then elementwise ops on its result. Returns the roots of the
/// group, with the sum first; nullopt for other groups. Sets `rows` to the row variables.
std::optional<std::vector<FlatRoot>> match_sum_with_epilogue(KernelBuilder& builder, Vars& rows);

/// Emits the stores of all results of `roots`, which match_sum_with_epilogue() returned. The sum is
/// element `index` of an accumulator, or the total of its lanes if `per_lane`.
void emit_sum_results(KernelBuilder& builder, const std::vector<FlatRoot>& roots,
                      int64_t accumulator_id, const std::vector<Expr>& index, bool per_lane,
                      kir::Block& out);

/// CPU schedule for a contraction with an elementwise epilogue. A contraction is a sum of products
/// in which each operand element is used by several results, such as a matmul. Vectorizes a
/// variable along which loads are contiguous. Up to two result variables are tiled, so that one
/// load feeds several accumulators. A tile with few results accumulates several vectors at once. A
/// long reduction is divided into strips whose operands fit in the cache. All results that read a
/// strip are updated before the next strip.
class Contraction {
 public:
  /// Returns the schedule of the builder's group, or nullopt if this schedule does not apply to the
  /// group.
  static std::optional<Contraction> match(KernelBuilder& builder);
  /// Sets the body and the number of blocks of the builder's kernel.
  void emit();

 private:
  struct Tile {
    int64_t var = -1;
    int64_t size = 1;
  };
  struct OperandLoad {
    Expr offset;
    double cost = 0;  ///< cost of one access; a multiply-add costs 1
  };
  /// Variable and range of the vector loop of a tile.
  struct VectorLoop {
    int64_t var = -1;
    Expr begin, end;
  };
  explicit Contraction(KernelBuilder& builder) : b_(builder) {}

  double shared_cost(const OperandLoad& load, int64_t vector_var) const;
  bool choose_vector_var(bool share_loads);
  std::vector<OperandLoad> operand_loads(int64_t vector_var) const;
  double result_access_cost(int64_t vector_var) const;
  void choose_tiles();
  void choose_vars_accumulated_in_memory();
  double operand_bytes(const Vars& vars) const;
  double tile_cost(const std::vector<OperandLoad>& loads, const Tile& a, const Tile& b) const;
  Expr tile_count(int64_t var) const;
  int64_t tile_size(int64_t var) const;
  void emit_full_and_partial_tiles(const std::vector<FlatRoot>& roots, size_t next, Vars tile_vars,
                                   const std::map<int64_t, Expr>& tile_indices, kir::Block& out);
  int64_t vector_lanes() const;
  int64_t concurrent_vectors(const Vars& tile_vars) const;
  void emit_wide_tiles(const std::vector<FlatRoot>& roots, const Vars& tile_vars, int64_t vectors,
                       kir::Block& out);
  void emit_tile(const std::vector<FlatRoot>& roots, const Vars& tile_vars, const VectorLoop& lanes,
                 kir::Block& out);
  // Functions named emit_..._loops append loops to `out` and return the body of the innermost one.
  kir::Block& emit_memory_loops(kir::Block& out);
  kir::Block& emit_tile_loops(const Vars& tile_vars, kir::Block& out);
  kir::Block& emit_reduction_loops(const Vars& vars, double copies, kir::Block& out);

  KernelBuilder& b_;
  std::vector<FlatRoot> roots_;  ///< the contraction, then its epilogue
  Vars rows_;
  int64_t vector_ = -1;         ///< id of the vectorized loop variable; -1: none
  bool lanes_reduced_ = false;  ///< whether the vector variable is a reduction variable
  std::vector<Tile> tiles_;
  Vars vars_accumulated_in_memory_;  ///< result variables that index accumulators in memory
  int64_t strip_ = 0;                ///< iterations of the outermost reduction loop per strip
  VectorLoop chunk_;
  std::map<int64_t, int64_t> sizes_;  ///< unrolled variable of a tile -> extent
};

}  // namespace fluid
