#pragma once

// A group whose reads and stores are offsets into flat buffers. All schedules start from this form.

#include <vector>

#include "codegen/kernel_ir.h"
#include "ops/group.h"

namespace fluid {

using Vars = std::vector<int64_t>;

/// An index that comes from data. Where `bad` holds, the read was clamped and the error words must
/// be set.
struct IndexCheck {
  Expr bad;
  Expr index;
  int64_t input;  ///< index of the input that is read
};

struct FlatSink {
  const GroupSink* source = nullptr;
  int id = 0;        ///< position in Group::sinks
  Vars out, reduce;  ///< variables of extent other than 1
  /// The value to store or to reduce. Its leaves are loads and Lets. Let 2 * s + r is result r of
  /// the row-local reduction with sink id s.
  Expr body;
  DType acc = DType::f32;                    ///< dtype of a reduction's accumulator
  Expr position;                             ///< for argmax: row-major index of the reduced element
  std::vector<std::pair<int, Expr>> stores;  ///< (result, offset), in the order of `buffers`
  std::vector<int64_t> buffers;              ///< output buffer of each store
  std::vector<IndexCheck> checks;
  Expr kept;               ///< row-major index of the element in the reduction's result
  Dim kept_size;           ///< elements of the reduction's result
  bool unrounded = false;  ///< stores the accumulator in its own dtype
  bool is_reduction() const { return source->combine.has_value(); }
};

/// Properties of the target processor that schedules use.
struct Processor {
  bool gpu = false;
  int64_t lanes = 16;                   ///< elements that one instruction reads
  double block_operations = 48 * 1024;  ///< operations of one block, about
  int64_t row_multiple = 64;   ///< block sizes are multiples of this when rows run in lanes
  int64_t max_partials = 128;  ///< most blocks of a part that has partial results
};
/// On a CPU a block takes some microseconds.
inline constexpr Processor kCpu;
/// On a GPU a block is the least work that a team can share: one row, or one vector per thread.
inline constexpr Processor kGpu{
    .gpu = true, .lanes = 32, .block_operations = 1, .row_multiple = 1024, .max_partials = 512};

/// State that the parts of a kernel share while the kernel is built.
struct KernelBuilder {
  const Processor processor;
  Group group;
  kir::Kernel kernel;  ///< buffers: inputs, outputs, then others in order of request
  int64_t next_var = 0;
  int64_t next_let = 0;  ///< starts at 2 * sinks; smaller ids are results of reductions
  int64_t next_acc = 0;
  bool checks = false;  ///< whether an index comes from data

  KernelBuilder(Group analyzed, std::string name, const Processor& processor = kCpu);
  Expr new_var() { return Expr::var(next_var++); }
  int64_t scratch(DType dtype, Dim elements);  ///< adds a buffer and returns its index
  /// A read of `value` from the constants buffer, which holds each value once.
  Expr constant(int64_t value);
  /// Returns the extent of a variable.
  const Dim& extent(int64_t var) const { return extents[static_cast<size_t>(var)]; }
  std::vector<Dim> extents;  ///< extent of each variable; collapse() appends more
};

/// Returns `vars` without -1, which stands for a dim of extent 1.
Vars real(const Vars& vars);
/// Returns the row-major index over `vars`, and the number of elements.
Expr position_over(const KernelBuilder& builder, const Vars& vars);
Dim count_over(const KernelBuilder& builder, const Vars& vars);

/// Returns the offset of `index` in a buffer of `type`, which may have a layout.
Expr offset_of(const Type& type, const std::vector<Expr>& index);

/// Placeholder for the index of the buffer of error words. The index is known once all scratch
/// buffers exist.
inline constexpr int64_t kErrorBuffer = -1;

/// Loads element `offset` of `buffer`; gives `fallback` where `mask` is false. A null mask is true.
Expr load(int64_t buffer, DType dtype, const Expr& offset, const Expr& mask = {},
          double fallback = 0);

/// Loads the reduction result that `let` refers to from `buffer`, which holds it in row-major
/// order.
Expr load_result(const Group& group, const Expr& let, int64_t buffer);

/// Returns the sink in flat form. `resolve` replaces a read of a reduction's result.
FlatSink flatten(KernelBuilder& builder, int sink,
                 const std::function<Expr(const Expr& let)>& resolve);

/// Merges pairs of variables that always occur as a * extent(b) + b into one variable. Updates
/// `rows` too.
void collapse(KernelBuilder& builder, std::vector<FlatSink>& sinks, Vars& rows);

/// Substitutes `by` for `var` everywhere in the sink.
void rename(FlatSink& sink, int64_t var, const Expr& by);

}  // namespace fluid
