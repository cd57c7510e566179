#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/loops.h"

namespace fluid {

/// Writes the kernel of a Loops op. Statements are appended to the innermost open loop. A loop is
/// open while the function that writes its body runs.
///
///   KernelWriter k(c);
///   k.blocks(rows, [&](const Expr& row) {
///     k.vector_loop(0, columns, [&](const Expr& i) {
///       k.store(y, row * n + i, k.load(x, row * n + i));
///     });
///   });
///   return k.kernel();
class KernelWriter {
 public:
  /// A buffer of the kernel. Offsets into it are in elements.
  struct Array {
    int64_t buffer = -1;
    DType dtype = f32;
  };
  /// An array of accumulators (see kir::Accumulator).
  struct Accumulators {
    int64_t id = -1;
    DType dtype = f32;
  };
  using Body = std::function<void()>;
  using LoopBody = std::function<void(const Expr& i)>;

  explicit KernelWriter(const LoopsCtx& c);

  Array operand(size_t i) const { return operands_.at(i); }
  Array result(size_t i = 0) const { return results_.at(i); }
  /// Adds a scratch buffer. Must not be called after check_index().
  Array scratch(DType dtype, Dim elements);

  /// Writes the body of the kernel. `count` is the number of blocks; it may depend on the batch
  /// size.
  void blocks(const Expr& count, const LoopBody& body);
  /// Loops over [begin, end), see kir::For.
  void loop(const Expr& begin, const Expr& end, const LoopBody& body);
  void vector_loop(const Expr& begin, const Expr& end, const LoopBody& body);
  void unroll(int64_t count, const LoopBody& body);
  /// Runs `body` if `condition` is true. The condition must have the same value in all lanes.
  void branch(const Expr& condition, const Body& body);

  /// Loads an element and converts it to the compute dtype. load_if() returns `fallback` where
  /// `guard` is false.
  Expr load(const Array& a, const Expr& offset) const;
  Expr load_if(const Expr& guard, const Array& a, const Expr& offset, double fallback) const;
  void store(const Array& a, const Expr& offset, const Expr& value, const Expr& mask = {});
  /// Emits code that computes `value` once, at this point of the kernel. Returns an expression that
  /// reads the computed value.
  Expr let(const Expr& value);

  /// Declares an array of accumulators that start as the identity of `combine`.
  Accumulators accumulators(DType dtype, Combine combine = Combine::sum,
                            const std::vector<int64_t>& dims = {});
  /// Declares an accumulator for the next vector loop, with one value per lane. total() combines
  /// the values of all lanes.
  Accumulators lane_accumulators(DType dtype, Combine combine = Combine::sum);
  void accumulate(const Accumulators& a, const Expr& value, const std::vector<Expr>& index = {});
  Expr read(const Accumulators& a, const std::vector<Expr>& index = {}) const;
  Expr total(const Accumulators& a) const;

  /// Returns `index` clamped to [0, extent). An out-of-range index sets the error word of operand
  /// `i`, unless `mask` is false. A null mask is true. Loops::checked of the op must list operand
  /// `i`.
  Expr check_index(size_t i, const Expr& index, const Expr& extent, const Expr& mask = {});

  /// Returns the kernel. Sets the kernel's estimated work per block from the op's cost.
  kir::Kernel kernel();

 private:
  void append_loop(kir::For::Kind kind, const Expr& begin, const Expr& end, const LoopBody& body);
  kir::Block& current_block() { return *open_.back(); }

  const LoopsCtx& c_;
  kir::Kernel kernel_;
  std::vector<Array> operands_, results_;
  std::vector<kir::Block*> open_;  ///< the open loops, innermost last
  int64_t next_var_ = 0, next_let_ = 0, next_accumulator_ = 0;
  int64_t error_ = -1;  ///< index of the buffer of error words
};

/// Returns the number of blocks that saturates `device`, for kernels whose work can be divided into
/// any number of blocks.
int64_t preferred_blocks(KernelDevice device);

/// View of a shape as [outer, extent, inner], in row-major order. `extent` is the extent of one
/// axis. A line is a 1-d slice along this axis.
struct AxisView {
  Dim outer, inner;
  int64_t extent;
};
/// `axis` must be non-negative and must not be the batch dimension.
AxisView view_along(const Shape& shape, int64_t axis);

/// Writes a kernel that processes one line per vector lane. `body(line, first)` writes the code for
/// one line. `line` is the index of the line, and `first` is the offset of its first element.
/// Element t of the line is at first + t * inner.
void for_each_line(KernelWriter& k, const LowerCtx& c, const AxisView& view,
                   const std::function<void(const Expr& line, const Expr& first)>& body);

}  // namespace fluid
