#pragma once

// CPU schedule for contractions with few results: divides the reduction among the blocks.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// CPU schedule for a contraction that has few results, long sums, and a result variable along
/// which all loads are contiguous or broadcast. An example is the filter gradient of a depthwise
/// convolution of channels-last images. The schedule Contraction would read all operands once for
/// each tile of results. This schedule gives each block a range of the reduction. The block divides
/// its range into strips that fit in the L1 cache, and updates all results before the next strip.
/// Kernel::finish adds the partial results of the blocks in order and computes the epilogue.
class SplitContraction {
 public:
  /// Returns the schedule of the builder's group, or nullopt if this schedule does not apply to the
  /// group. If it returns nullopt, the builder is unusable.
  static std::optional<SplitContraction> match(KernelBuilder& builder);
  /// Sets the body, the finish function and the number of blocks of the builder's kernel.
  void emit();

 private:
  /// Consecutive values of a result variable whose accumulators are in registers at the same time.
  struct Segment {
    Expr base;    ///< first value
    int64_t var;  ///< variable of the unrolled loop: the value minus `base`
    int64_t size;
  };
  explicit SplitContraction(KernelBuilder& builder) : b_(builder) {}

  void flatten_epilogue(const GroupPart& part);
  bool choose_vector_var();
  bool choose_partials();
  void choose_strips();
  void choose_tiles();
  void find_interior();
  Expr partial_place(const Expr& part) const;
  void emit_item(kir::Block& out);
  void emit_tiles(const FlatSink& sum, const Expr& place, size_t next,
                  std::vector<Segment> segments, kir::Block& out);
  void emit_tile(const FlatSink& sum, const Expr& place, const std::vector<Segment>& segments,
                 kir::Block& out);
  void emit_finish();
  void emit_epilogue(kir::Block& out);

  KernelBuilder& b_;
  FlatSink sum_;
  std::vector<FlatSink> epilogue_;  ///< reads the sum from `total_`
  int64_t total_ = -1;     ///< index of the buffer of combined results; -1: no epilogue reads them
  int64_t partials_ = -1;  ///< index of the buffer of partial results
  int64_t vector_ = -1;    ///< index of the vectorized result variable
  Vars others_;            ///< the other result variables
  std::vector<int64_t> tile_sizes_;  ///< tile size of each variable in `others_`
  int64_t max_parts_ = 0;            ///< maximum number of ranges of the reduction
  size_t strip_var_ = 0;             ///< index in FlatSink::reduce of the variable cut into strips
  int64_t strip_ = 1;                ///< iterations of the strip variable per strip
  /// Values of the innermost reduction variable for which no access is out of range. Empty if the
  /// loop is not divided.
  int64_t interior_begin_ = 0, interior_end_ = 0;
  Expr parts_;                     ///< number of ranges of the reduction
  Expr part_;                      ///< index of the block's range
  Expr begin_, end_;               ///< the block's range of the vectorized variable
  std::vector<Expr> strip_range_;  ///< begin and end of the range of the strip variable
};

}  // namespace fluid
