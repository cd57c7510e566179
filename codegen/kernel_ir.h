#pragma once

// Kernel IR: loops, accumulators and scalar expressions over flat buffers. Schedules make it from a
// fused group; the emitter turns it into LLVM IR for the host and for PTX. It knows no op.
//
// A kernel is called for a range of blocks, in any order, from any thread, and must give the same
// bits for any partition: state that crosses blocks goes through scratch buffers indexed by block
// and is combined in `finish`, which runs once after all blocks.

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
  Dim elements;  ///< padded; may be a multiple of the batch
  Role role = Role::in;
  /// Shares no memory with an output of the kernel: its reads may move across stores and go through
  /// read-only caches. Leave it false where the memory plan may put a result in the operand's
  /// place.
  bool exclusive = false;
};

struct Stmt;
using Block = std::vector<Stmt>;

/// for var in [begin, end) step 1.
/// vector: iterations are lanes; the last, partial vector runs with a mask. Loads and stores whose
/// offset moves by one a lane become vector loads, by zero broadcasts, else strided or gathered.
/// The threads of a team share its iterations; what lies outside of vector loops all of them do
/// alike, except for stores, which one of them does.
/// unroll: begin and end are constants; the body is repeated with var a constant.
struct For {
  enum class Kind : uint8_t { serial, unroll, vector };
  int64_t var;
  Expr begin, end;
  Kind kind = Kind::serial;
  std::shared_ptr<Block> body;
};

/// Names a value; visible in the rest of the block and below.
struct Let {
  int64_t id;
  Expr value;
};

/// An array of accumulators, live until the end of the block that declares it, set to the identity
/// of `combine` (sum 0, max -inf, min +inf; argmax: -inf at position 0). `dims` empty: one.
/// Indices are constants after unrolling. `lanes` true: declared outside a vector loop and combined
/// lane by lane inside it; Scalar::lanes gives the total. Declared inside a vector loop, each lane
/// has its own anyway.
struct Acc {
  int64_t id;
  DType dtype;
  Combine combine = Combine::sum;
  std::vector<int64_t> dims;
  bool lanes = false;
};

/// acc[index] = combine(acc[index], value). For argmax, `position` (i64) goes along: read it back
/// as Scalar::acc (or lanes) of dtype i64, or i32 where the values are i64 themselves.
struct Accumulate {
  int64_t acc;
  std::vector<Expr> index;
  Expr value;
  Expr position;
};

/// buffer[offset] = value, converted to the buffer's dtype. A null mask is true.
struct StoreTo {
  int64_t buffer;
  Expr offset;
  Expr value;
  Expr mask;
};

struct If {
  Expr condition;  ///< the same for all lanes
  std::shared_ptr<Block> body;
};

struct Stmt : std::variant<For, Let, Acc, Accumulate, StoreTo, If> {
  using variant::variant;
};

struct Kernel {
  std::string name;             ///< a C identifier, unique in its module
  std::vector<Buffer> buffers;  ///< in argument order: operands, results, others, error words
  /// The content of the buffer of role `constants`. The code reads these numbers at run time, so
  /// kernels that differ in them alone share code.
  std::vector<int64_t> constants;
  Expr blocks;               ///< how many; may read Scalar::batch
  int64_t block_var = 0;     ///< the loop variable that holds the block's number in `body`
  int64_t vector_width = 0;  ///< lanes of vector loops; 0: chosen, see lanes_of
  int64_t team = 1;          ///< threads that run a block together: a power of two; 1 on a CPU
  Block body;
  Block finish;                ///< empty: none
  double flops_per_block = 0;  ///< for the choice of serial or parallel execution
};

/// Readable text of the whole kernel: for tests, dumps and the object cache's key.
std::string print(const Kernel& kernel);

/// Lanes of a thread in the kernel's vector loops, a power of two. Where the kernel does not say,
/// those of a CPU: 64 bytes of the widest float that its vector loops and its buffers of several
/// elements hold, of the widest integer when there is none.
int64_t lanes_of(const Kernel& kernel);

/// `e`, which may read Scalar::batch, for a concrete batch.
int64_t evaluate(const Expr& e, int64_t batch);

}  // namespace fluid::kir
