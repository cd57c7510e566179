#pragma once

// CPU schedule for contractions with few results: divides the reduction among the blocks.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// CPU schedule for a contraction that has few results, long sums, and a result variable along
/// which all loads are contiguous or broadcast. An example is the filter gradient of a depthwise
/// convolution of channels-last images. The schedule Contraction would read all operands once for
/// each tile of results. This schedule gives each block a slice of the reduction (split-K). The
/// block divides its slice into strips that fit in the L1 cache, and updates all results before the
/// next strip. Kernel::finish adds the partial results of the slices in order and computes the
/// epilogue.
class SplitContraction {
 public:
  /// Returns the schedule of the builder's group, or nullopt if this schedule does not apply to the
  /// group. If it returns nullopt, the builder is unusable.
  static std::optional<SplitContraction> match(KernelBuilder& builder);
  /// Sets the body, the finish function and the number of blocks of the builder's kernel.
  void emit();

 private:
  /// A tile of consecutive indices along one dimension of the result. Its accumulators are in
  /// registers.
  struct Segment {
    Expr base;    ///< first value of the segment
    int64_t var;  ///< variable of the unrolled loop: the offset from `base`
    int64_t size;
  };
  explicit SplitContraction(KernelBuilder& builder) : b_(builder) {}

  void flatten_epilogue(const GroupPart& part);
  bool choose_vector_var();
  bool choose_partials();
  void choose_strips();
  void choose_tiles();
  void find_interior();
  Expr partial_offset(const Expr& split) const;
  void emit_strip(kir::Block& out);
  void emit_tiles(const FlatRoot& sum, const Expr& offset, size_t next,
                  std::vector<Segment> segments, kir::Block& out);
  void emit_tile(const FlatRoot& sum, const Expr& offset, const std::vector<Segment>& segments,
                 kir::Block& out);
  void emit_finish();
  void emit_epilogue(kir::Block& out);

  KernelBuilder& b_;
  FlatRoot sum_;
  std::vector<FlatRoot> epilogue_;  ///< elementwise roots, which read the sum from `total_`
  int64_t total_ = -1;     ///< index of the buffer of sums that the epilogue reads; -1: no epilogue
  int64_t partials_ = -1;  ///< index of the buffer of partial results
  int64_t vector_ = -1;    ///< id of the vectorized result variable
  Vars others_;            ///< result variables that are not vectorized
  std::vector<int64_t> tile_sizes_;  ///< tile size of each variable in `others_`
  int64_t max_splits_ = 0;           ///< maximum number of slices of the reduction
  size_t strip_var_ = 0;  ///< index in FlatRoot::reduce of the variable that is divided into strips
  int64_t strip_ = 1;     ///< number of iterations of the strip variable per strip
  /// Interior: the range of the innermost reduction variable in which no access is out of bounds
  /// along this axis. Empty if there is no interior.
  int64_t interior_begin_ = 0, interior_end_ = 0;
  Expr splits_;                    ///< number of slices of the reduction
  Expr split_;                     ///< index of the slice of the reduction that the block sums
  Expr begin_, end_;               ///< the block's range of the vectorized variable
  std::vector<Expr> strip_range_;  ///< begin and end of the current strip
};

}  // namespace fluid
