#pragma once

// Kernel IR: loops, accumulators and scalar expressions over flat buffers. Schedules create it from
// a fused group; the emitter turns it into LLVM IR for the host or for PTX. It knows no op.
//
// A kernel is called for ranges of blocks, in any order, from any thread. It must give the same
// bits for any partition into ranges. Data that crosses blocks goes through scratch buffers indexed
// by block. `finish`, which runs once after all blocks, combines it.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ops/expr.h"
#include "ops/op_def.h"

namespace fluid::kir {

struct Buffer {
  enum class Role : uint8_t { in, out, scratch, error, constants };
  std::string name;
  DType dtype = DType::f32;
  Dim elements;  ///< with padding; may be a multiple of the batch size
  Role role = Role::in;
  /// The buffer aliases no output of the kernel, so its loads may move across stores and use
  /// read-only caches. Must be false where the memory plan may place a result in the operand's
  /// memory.
  bool exclusive = false;
};

struct Stmt;
using Block = std::vector<Stmt>;

/// for var in [begin, end) step 1.
/// vector: iterations are lanes; the last, partial vector runs under a mask. Accesses whose offset
/// moves by 1 per lane become vector accesses; by 0, broadcasts; others are strided or gathered.
/// The threads of a team share the iterations. Outside of vector loops all threads of a team do the
/// same work, except that one thread stores.
/// unroll: begin and end are constants; the body is repeated with a constant var.
struct For {
  enum class Kind : uint8_t { serial, unroll, vector };
  int64_t var;
  Expr begin, end;
  Kind kind = Kind::serial;
  std::shared_ptr<Block> body;
};

/// Names a value. The name is visible in the rest of the block and in nested blocks.
struct Let {
  int64_t id;
  Expr value;
};

/// An array of accumulators of shape `dims` (empty: one), live until the end of its block. Elements
/// start as the identity of `combine`: sum 0, max -inf, min +inf, argmax -inf at position 0.
/// Indices are constants after unrolling. With `lanes`, it is declared outside a vector loop and
/// combined lane by lane inside it; Scalar::lanes reads the total. Without `lanes`, an accumulator
/// declared inside a vector loop has one value per lane.
struct Acc {
  int64_t id;
  DType dtype;
  Combine combine = Combine::sum;
  std::vector<int64_t> dims;
  bool lanes = false;
};

/// acc[index] = combine(acc[index], value). An argmax keeps the `position` (i64) of the best value.
/// It is read as Scalar::acc or Scalar::lanes of dtype i64, or i32 if the values are i64.
struct Accumulate {
  int64_t acc;
  std::vector<Expr> index;
  Expr value;
  Expr position;
};

/// buffer[offset] = value where `mask` holds, converted to the buffer's dtype. A null mask is true.
struct StoreTo {
  int64_t buffer;
  Expr offset;
  Expr value;
  Expr mask;
};

struct If {
  Expr condition;  ///< uniform over the lanes
  std::shared_ptr<Block> body;
};

struct Stmt : std::variant<For, Let, Acc, Accumulate, StoreTo, If> {
  using variant::variant;
};

struct Kernel {
  std::string name;             ///< a C identifier, unique in its module
  std::vector<Buffer> buffers;  ///< in argument order: operands, results, others, error words
  /// Contents of the buffer of role `constants`. Code reads them at run time, so kernels that
  /// differ only in these numbers share code.
  std::vector<int64_t> constants;
  Expr blocks;               ///< number of blocks; may read Scalar::batch
  int64_t block_var = 0;     ///< variable that holds the block's index in `body`
  int64_t vector_width = 0;  ///< lanes of vector loops; 0: see lanes_of()
  int64_t team = 1;          ///< threads that run a block together: a power of two; 1 on a CPU
  Block body;
  Block finish;                ///< empty: none
  double flops_per_block = 0;  ///< decides between serial and parallel execution
};

/// Prints the whole kernel. For tests, dumps and the object cache's key.
std::string print(const Kernel& kernel);

/// Returns the lanes per thread in the kernel's vector loops, a power of two. If `vector_width` is
/// 0, a vector has the 64 bytes of a CPU's widest register. Its element is the widest float in
/// vector loops and in buffers of several elements, or the widest integer if there is no float.
int64_t lanes_of(const Kernel& kernel);

/// Evaluates `e`, which may read Scalar::batch, for a batch size.
int64_t evaluate(const Expr& e, int64_t batch);

}  // namespace fluid::kir
