#pragma once

// Flat form of a fused group, in which loads and stores address buffers by flat offsets. All
// schedules start from this form.

#include <vector>

#include "ops/group.h"
#include "ops/kernel_ir.h"
#include "ops/loops.h"

namespace fluid {

using Vars = std::vector<int64_t>;

/// Bounds check of a data-dependent index. If `out_of_range` is true, the index was clamped and the
/// error words must be set.
struct IndexCheck {
  Expr out_of_range;
  Expr index;
  int64_t input;  ///< index into Group::inputs of the input that is read
};

/// A root of a fused group: an elementwise output or a reduction. Its loads and stores address
/// buffers by flat offsets.
struct FlatRoot {
  const FusionRoot* source = nullptr;
  int id = 0;  ///< index into Group::roots
  /// Loop variables over the result and over the reduced dimensions. Variables of extent 1 are
  /// omitted.
  Vars out, reduce;
  /// The expression to store or to reduce. Its leaves include loads from buffers, and Lets that
  /// read reductions of the same row. Let 2 * s + r reads result r of the reduction with root id s.
  Expr body;
  DType acc_dtype = DType::f32;  ///< dtype of the accumulator of a reduction
  Expr argmax_index;             ///< for argmax: row-major index over the reduction variables
  std::vector<std::pair<int, Expr>> stores;  ///< (result index, offset) of each store
  std::vector<int64_t> buffers;              ///< buffer index of each store
  std::vector<IndexCheck> checks;
  Expr result_index;       ///< for a reduction: row-major index of the result element
  Dim result_elements;     ///< for a reduction: number of elements of the result
  bool unrounded = false;  ///< whether the result is stored in the dtype of the accumulator
  bool is_reduction() const { return source->combine.has_value(); }
};

/// Properties of the target processor on which schedules depend.
struct Processor {
  bool gpu = false;
  int64_t lanes = 16;                   ///< number of elements that one load instruction reads
  double block_operations = 48 * 1024;  ///< approximate number of scalar operations per block
  /// If a row variable is vectorized, the number of rows per block is a multiple of row_multiple.
  int64_t row_multiple = 64;
  int64_t max_partials = 128;  ///< maximum number of blocks when each block stores partial results
  /// CPU only: number of accumulator vectors that fit in registers; see cpu_accumulators().
  int64_t accumulators = kMaxCpuAccumulators;
};
/// Properties of CPUs. A block runs for a few microseconds.
inline constexpr Processor kCpu;
/// Properties of GPUs. A kernel IR block is as small as possible: one row per thread group, or one
/// vector per thread.
inline constexpr Processor kGpu{
    .gpu = true, .lanes = 32, .block_operations = 1, .row_multiple = 1024, .max_partials = 512};

/// State of building one kernel: the kernel, its fused group, and counters for new ids.
struct KernelBuilder {
  const Processor processor;
  Group group;
  kir::Kernel kernel;  ///< buffers: inputs, outputs, then scratch and constants
  int64_t next_var = 0;
  /// Next free Let id. Lets with an id below 2 * (number of roots) hold reduction results.
  int64_t next_let = 0;
  int64_t next_accumulator = 0;
  bool has_checks = false;  ///< whether a root has bounds checks

  KernelBuilder(Group analyzed, std::string name, const Processor& processor = kCpu);
  Expr new_var() { return Expr::var(next_var++); }
  /// Returns the number of lanes of the kernel's vectors on a CPU.
  int64_t lanes() const { return kir::lanes_of(kernel); }
  int64_t add_scratch_buffer(DType dtype, Dim elements);    ///< returns the index of the buffer
  int64_t add_local_buffer(DType dtype, int64_t elements);  ///< returns the index of the buffer
  /// Returns an expression that loads `value` from the constants buffer. Equal values share one
  /// element of this buffer.
  Expr load_constant(int64_t value);
  const Dim& extent(int64_t var) const { return extents[static_cast<size_t>(var)]; }
  /// Extents of the loop variables, indexed by variable. collapse_vars() enlarges the extents of
  /// merged variables.
  std::vector<Dim> extents;
};

/// Returns `vars` without its -1 entries. A -1 entry stands for a dim of extent 1.
Vars without_unit_dims(const Vars& vars);
/// Returns the row-major index of the current iteration of the loops over `vars`.
Expr row_major_index(const KernelBuilder& builder, const Vars& vars);
/// Returns the trip count of the loops over `vars`.
Dim element_count(const KernelBuilder& builder, const Vars& vars);

/// Returns the offset, in elements, of the element at `index` in a buffer of type `type`. The type
/// may have a blocked layout.
Expr offset_of(const Type& type, const std::vector<Expr>& index);

/// Placeholder for the index of the buffer of error words, which is known only after all scratch
/// buffers exist.
inline constexpr int64_t kErrorBuffer = -1;

/// Returns a load of element `offset` of `buffer`. The result is `fallback` where `mask` is false.
/// A null mask is true.
Expr load(int64_t buffer, DType dtype, const Expr& offset, const Expr& mask = {},
          double fallback = 0);

/// Returns a load of the reduction result to which `let` refers. `buffer` contains all results of
/// the reduction in row-major order.
Expr load_reduction_result(const Group& group, const Expr& let, int64_t buffer);

/// Returns the root with id `root_id` in flat form. `resolve` maps a Let that reads a reduction
/// result to the expression that replaces it.
FlatRoot flatten(KernelBuilder& builder, int root_id,
                 const std::function<Expr(const Expr& let)>& resolve);

/// Merges pairs of variables that always occur as a * extent(b) + b into one variable, so that one
/// loop replaces two. Removes merged variables from `rows`, too.
void collapse_vars(KernelBuilder& builder, std::vector<FlatRoot>& roots, Vars& rows);

/// Returns `e` with the variable `var` replaced by `replacement`.
Expr replace_var(const Expr& e, int64_t var, const Expr& replacement);
/// Replaces the variable `var` by `replacement` in all expressions of the root.
void substitute(FlatRoot& root, int64_t var, const Expr& replacement);

}  // namespace fluid
