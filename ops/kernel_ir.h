#pragma once

// Kernel IR: loops, accumulators and scalar expressions over flat buffers. A schedule translates a
// fused group of tensor ops to kernel IR. The emitter translates kernel IR to LLVM IR for the CPU
// or the GPU (PTX).
//
// A call of a kernel runs a range of blocks. Calls come in any order, from any thread. The results
// must be bit-identical for any partition of the blocks into ranges. Blocks write partial results
// to scratch buffers, which are indexed by block. `finish` runs once after all blocks and combines
// the partial results.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ops/combine.h"
#include "ops/expr.h"

namespace fluid::kir {

struct Buffer {
  /// `local`: memory of the thread that runs a block, on its stack. Undefined at the start of a
  /// block. The caller passes no address for it. CPUs only.
  enum class Role : uint8_t { in, out, scratch, error, constants, local };
  std::string name;
  DType dtype = DType::f32;
  Dim elements;  ///< number of elements, including padding; may depend on the batch size
  Role role = Role::in;
  /// Whether the buffer aliases no output of the kernel (noalias). Loads from it may then move
  /// across stores and use read-only caches. False for an operand that may share memory with a
  /// result.
  bool noalias = false;
};

struct Stmt;
using Block = std::vector<Stmt>;

/// Loop: for var in [begin, end) step 1: body.
/// Kind::vector: iterations are vector lanes. The last, partial vector is masked. An access whose
/// offset grows by 1 per lane is a vector access. An access with the same offset in all lanes is a
/// broadcast. Other accesses are strided or gathered. On a GPU, the iterations are distributed over
/// the threads that run the block (Kernel::thread_group_size). Outside of vector loops, all these
/// threads execute the same statements, except that only one thread stores. Kind::unroll: begin and
/// end are constants. The body is emitted once per iteration, with a constant for var.
struct For {
  enum class Kind : uint8_t { serial, unroll, vector };
  int64_t var;
  Expr begin, end;
  Kind kind = Kind::serial;
  std::shared_ptr<Block> body;
};

/// Binds the value of an expression to an id. The id is visible in the rest of the block and in
/// nested blocks.
struct Let {
  int64_t id;
  Expr value;
};

/// Declares an array of accumulators of shape `dims` (empty: one accumulator), which is live until
/// the end of its block. Each accumulator starts as the identity of `combine`: 0 for sum, 1 for
/// prod, -inf for max and argmax (at index 0), +inf for min. An array can be in registers only
/// if its indices are constants after unrolling. If `per_lane`, the array is declared outside of a
/// vector loop and accumulated lane by lane inside the loop; ScalarOp::lanes reads the total over
/// all lanes. If not `per_lane`, an accumulator that is declared inside a vector loop has one value
/// per lane.
struct Accumulator {
  int64_t id;
  DType dtype;
  Combine combine = Combine::sum;
  std::vector<int64_t> dims;
  bool per_lane = false;
};

/// acc[index] = combine(acc[index], value). An argmax accumulator also stores `argmax_index`, the
/// i64 index of its best value. ScalarOp::acc and ScalarOp::lanes with dtype i64 read the index
/// instead of the value. For i64 values, dtype i32 reads the index.
struct Accumulate {
  int64_t accumulator_id;
  std::vector<Expr> index;
  Expr value;
  Expr argmax_index;
};

/// buffer[offset] = value, converted to the buffer's dtype, where `mask` holds. A null mask is
/// true.
struct StoreTo {
  int64_t buffer;
  Expr offset;
  Expr value;
  Expr mask;
};

/// Hint that the kernel will soon read the cache line of buffer[offset]. The offset may be out of
/// bounds. In a vector loop, the offset is that of lane 0.
struct Prefetch {
  int64_t buffer;
  Expr offset;
};

struct If {
  Expr condition;  ///< has the same value in all lanes
  std::shared_ptr<Block> body;
};

struct Stmt : std::variant<For, Let, Accumulator, Accumulate, StoreTo, Prefetch, If> {
  using variant::variant;
};

struct Kernel {
  std::string name;             ///< a C identifier, unique in its module
  std::vector<Buffer> buffers;  ///< in argument order: operands, results, scratch, error words;
                                ///< local ones last
  /// Contents of the buffers of role `constants`, in 64-bit words: integers, or the bits of f64
  /// numbers. Kernels load them at run time, so that kernels that differ only in constants share
  /// code.
  std::vector<int64_t> constants;
  /// Whether the code is independent of the number of blocks and of the buffer sizes: `body` loads
  /// its extents from `constants`.
  bool generic = false;
  Expr blocks;               ///< number of blocks; the expression may read ScalarOp::batch
  int64_t block_var = 0;     ///< variable that holds the block index in `body`
  int64_t vector_width = 0;  ///< number of lanes in vector loops; 0: lanes_of() chooses it
  /// Number of threads that run a block together; a power of two, 1 on a CPU.
  int64_t thread_group_size = 1;
  Block body;
  Block finish;                ///< runs once after all blocks; empty: the kernel has no finish
  double flops_per_block = 0;  ///< estimate; decides between serial and parallel execution
};

/// Returns the text of the whole kernel, for tests, dumps and the key of the object cache.
std::string print(const Kernel& kernel);

/// Returns the number of buffers whose addresses the caller passes: all but the local ones.
int64_t argument_count(const Kernel& kernel);

/// Returns the number of lanes per thread in the vector loops of a kernel, a power of two. This is
/// `vector_width` if it is not 0, else kVectorBytes divided by the size of the kernel's widest
/// float dtype. A kernel without floats uses its widest integer dtype instead. Considers only the
/// dtypes in vector loops and in buffers of several elements.
int64_t lanes_of(const Kernel& kernel);

/// Bytes of a vector in the vector loops of CPU kernels: an AVX-512 register. A CPU with narrower
/// registers holds a vector in several of them.
inline constexpr int64_t kVectorBytes = 64;

/// Batch size that schedules assume. Kernels are scheduled before the batch size is known.
inline constexpr int64_t kNominalBatch = 64;

/// Evaluates `e` for batch size `batch`, the value of ScalarOp::batch.
int64_t evaluate(const Expr& e, int64_t batch);

}  // namespace fluid::kir
