#pragma once

// A group with reads and stores as offsets into flat buffers: what all schedules start from.

#include <vector>

#include "codegen/kernel_ir.h"
#include "ops/group.h"

namespace fluid {

using Vars = std::vector<int64_t>;

/// An index that came from data: when `bad`, the read was clamped and the error words must be set.
struct IndexCheck {
  Expr bad;
  Expr index;
  int64_t input;  ///< which input was read
};

struct FlatSink {
  const GroupSink* source = nullptr;
  int id = 0;              ///< position in Group::sinks
  Vars out, reduce;        ///< variables of extent other than 1
  Expr body;               ///< loads; row-local reductions are `let` 2 * sink + result
  DType acc = DType::f32;  ///< dtype of a reduction's accumulator
  Expr position;           ///< argmax: of the reduced element, row-major
  std::vector<std::pair<int, Expr>> stores;  ///< (result, offset) with `buffers` alongside
  std::vector<int64_t> buffers;              ///< output buffer of each store
  std::vector<IndexCheck> checks;
  Expr kept;               ///< a reduction's element, row-major over its result
  Dim kept_size;           ///< how many there are
  bool unrounded = false;  ///< what is stored is the accumulator, of its dtype
  bool is_reduction() const { return source->combine.has_value(); }
};

/// What schedules know of the processor that a kernel is for.
struct Processor {
  bool gpu = false;
  int64_t lanes = 16;                   ///< elements that one instruction reads
  double block_operations = 48 * 1024;  ///< of one block, about
  int64_t row_multiple = 64;            ///< rows of a block that run in lanes
  int64_t most_partials = 128;          ///< blocks of a part that leaves partial results
};
/// A block takes some microseconds.
inline constexpr Processor kCpu;
/// A block is the least that a team can share: one row, or a vector for each thread.
inline constexpr Processor kGpu{
    .gpu = true, .lanes = 32, .block_operations = 1, .row_multiple = 1024, .most_partials = 512};

/// State that the parts of a kernel share while the kernel is built.
struct KernelBuilder {
  const Processor processor;
  Group group;
  kir::Kernel kernel;  ///< buffers: inputs, outputs, then others as they are asked for
  int64_t next_var = 0;
  int64_t next_let = 0;  ///< ids from 2 * sinks on; those below are reductions' results
  int64_t next_acc = 0;
  bool checks = false;  ///< some index comes from data

  KernelBuilder(Group analyzed, std::string name, const Processor& processor = kCpu);
  Expr new_var() { return Expr::var(next_var++); }
  int64_t scratch(DType dtype, Dim elements);  ///< a new buffer
  Expr constant(int64_t value);  ///< as read from the buffer of constants, which holds each once
  /// The dims of a variable.
  const Dim& extent(int64_t var) const { return extents[static_cast<size_t>(var)]; }
  std::vector<Dim> extents;  ///< of the variables; grows by collapsing
};

/// Variables of an extent other than 1.
Vars real(const Vars& vars);
/// Row-major position over `vars`, and how many there are.
Expr position_over(const KernelBuilder& builder, const Vars& vars);
Dim count_over(const KernelBuilder& builder, const Vars& vars);

/// Row-major or laid-out offset of `index` in a buffer of `type`.
Expr offset_of(const Type& type, const std::vector<Expr>& index);

/// Stands for the buffer of error words until all scratch buffers are known.
inline constexpr int64_t kErrorBuffer = -1;

/// Element `offset` of `buffer`; a null mask is true.
Expr load(int64_t buffer, DType dtype, const Expr& offset, const Expr& mask = {},
          double fallback = 0);

/// The result of a reduction that `let` reads, from the buffer that keeps it, row-major.
Expr load_result(const Group& group, const Expr& let, int64_t buffer);

/// The sink in flat form. `resolve` says what stands for a reduction's result read at an index.
FlatSink flatten(KernelBuilder& builder, int sink,
                 const std::function<Expr(const Expr& let)>& resolve);

/// Merges pairs of variables that always occur as a * extent(b) + b into one; `rows` too.
void collapse(KernelBuilder& builder, std::vector<FlatSink>& sinks, Vars& rows);

/// Substitutes variables everywhere in the sink.
void rename(FlatSink& sink, int64_t var, const Expr& by);

}  // namespace fluid
