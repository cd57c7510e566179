#pragma once

// The emitter: kernel IR to LLVM IR, one class for the host CPU and for NVIDIA GPUs. A value inside
// a vector loop is uniform (an LLVM scalar) or varying (an LLVM vector of `lanes` elements); the
// type of the LLVM value says which. With one lane, as many threads of a GPU have, all are uniform.

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/emit_threads.h"
#include "codegen/kernel_ir.h"
#include "codegen/llvm_headers.h"

namespace fluid::emit {

enum class Device : uint8_t { cpu, gpu };

/// Bumped whenever the same kernel IR becomes other code: part of the object cache's key.
inline constexpr int kEmitterVersion = 10;

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const kir::Kernel& kernel, Device device);
  /// Adds the functions `symbol` and, when the kernel has a finish, `symbol`_finish.
  /// CPU: void(ptr buffers, i64 batch, i64 begin, i64 end), over blocks [begin, end).
  /// GPU: the buffers by value, then batch; teams stride over the blocks; there is no finish.
  /// Emulated: as on the CPU, over the thread's share of all blocks; an EmulatedThread comes after
  /// the buffers.
  void run(const std::string& symbol);

 private:
  struct LetBinding {
    llvm::Value* value;
    Expr expr;
  };
  struct AccBinding {
    const kir::Acc* decl;
    llvm::AllocaInst* value;
    llvm::AllocaInst* position;  // of argmax, else null
    llvm::Type* type;            // of one element
    bool varying;
  };
  struct VectorLoop {
    int64_t var;
    llvm::Value* base;       // of lane 0, i64
    llvm::Value* values;     // one a lane
    llvm::Value* mask;       // null: all lanes run
    int64_t multiple, rest;  // base is `rest` modulo `multiple`; 0: it is `rest`
  };
  /// Bounds of an i64 value.
  struct Range {
    int64_t low, high;
  };

  // emit_kernel.cpp: functions and statements
  void function(const std::string& symbol, const kir::Block& body, bool is_finish);
  llvm::Function* declare(const std::string& symbol);
  void take_buffers(llvm::Value* table);
  void block_loop(const kir::Block& body);
  void block(const kir::Block& statements);
  void emit(const kir::For& loop);
  void emit(const kir::Let& let);
  void emit(const kir::Acc& acc);
  void emit(const kir::Accumulate& statement);
  void emit(const kir::StoreTo& store);
  void emit(const kir::If& statement);
  void serial(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void unrolled(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void vector(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void vector_body(const kir::For& loop, llvm::Value* base, llvm::Value* mask);
  void counted_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step,
                    const std::function<void(llvm::Value*)>& body);
  llvm::Value* tail_mask(llvm::Value* remaining);
  llvm::Value* constant_difference(const Expr& end, const Expr& begin);
  llvm::Value* acc_address(const AccBinding& acc, const std::vector<Expr>& index, bool position);
  const AccBinding& acc_named(int64_t id) const;
  llvm::Value* identity(DType dtype, Combine combine);
  llvm::Value* combine(Combine kind, DType dtype, llvm::Value* a, llvm::Value* b);
  /// Whether the candidate (value, position) replaces the argmax so far.
  llvm::Value* beats(DType dtype, llvm::Value* value, llvm::Value* position, llvm::Value* best,
                     llvm::Value* best_position);
  void keep(llvm::Value* value, llvm::Value* address);
  llvm::AllocaInst* allocate(llvm::Type* element, int64_t count);

  // emit_team.cpp: what the threads of a GPU do together
  void start_team();
  void team_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void team_vector(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  template <class Body>
  void one_thread(llvm::Value* condition, const Body& body);
  /// Combines values, and positions where there are any, of all threads of the team.
  void combine_team(Combine kind, DType dtype, llvm::Value*& value, llvm::Value*& position);
  void combine_threads(int64_t threads, Combine kind, DType dtype, llvm::Value*& value,
                       llvm::Value*& position);

  // emit_scalar.cpp: expressions
  llvm::Value* expr(const Expr& e);
  llvm::Value* compute(const Expr& e);
  llvm::Value* constant(const ExprNode& n);
  llvm::Value* binary(const Expr& e);
  llvm::Value* unary(const Expr& e);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* compare(Scalar op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* minimum_maximum(bool maximum, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* cast(llvm::Value* v, DType from, DType to);
  llvm::Value* philox(const Expr& e);
  llvm::Value* lanes_total(const Expr& e);
  void combine_lanes(Combine kind, DType dtype, llvm::Value*& value, llvm::Value*& position);
  static bool reads_position(const AccBinding& acc, DType dtype);
  llvm::Value* splat(llvm::Value* v);
  llvm::Value* like(llvm::Value* v, llvm::Value* shape);  // v, splat when `shape` is a vector
  void unify(llvm::Value*& a, llvm::Value*& b);
  llvm::Type* scalar_type(DType dtype);
  llvm::Type* shaped(llvm::Type* scalar, llvm::Value* shape);
  /// The value of `e` in lane 0, as a scalar.
  llvm::Value* first_lane(const Expr& e);

  // emit_index.cpp: what is known about i64 expressions
  bool uniform(const Expr& e);
  /// By how much it moves from lane to lane, when that is a constant.
  std::optional<int64_t> stride(const Expr& e);
  /// How far each lane is from lane 0, when those are constants.
  std::optional<std::vector<int64_t>> lane_steps(const Expr& e);
  /// Its value in lane 0 modulo `m`, when that is a constant.
  std::optional<int64_t> residue(const Expr& e, int64_t m);
  std::optional<int64_t> fixed(const Expr& e);  ///< its value, when that is a constant
  std::optional<Range> range(const Expr& e);
  /// Whether lanes that the mask of the loop leaves out hold 0.
  bool vanishes(const Expr& e);
  /// What a comparison gives in every lane, when the ranges tell.
  std::optional<bool> decided(const Expr& e);

  // emit_memory.cpp: loads and stores
  llvm::Value* load(const Expr& e);
  llvm::Value* scalar_load(const Expr& e, llvm::Value* guard);
  llvm::Value* strided_load(const Expr& e, int64_t stride, llvm::Value* mask);
  llvm::Value* shuffled_load(const Expr& e, const std::vector<int64_t>& steps, llvm::Value* mask);
  llvm::Value* read_by(llvm::Value* mask, const std::vector<std::vector<int>>& readers);
  llvm::Value* gather(const Expr& e, llvm::Value* mask);
  void store(const kir::StoreTo& s);
  void store_error(const kir::StoreTo& s);
  /// Of a vector at `offset` that starts where lane 0 is.
  llvm::Align vector_alignment(DType dtype, const Expr& offset);
  void strided_store(const kir::StoreTo& s, int64_t stride, llvm::Value* value, llvm::Value* mask);
  llvm::Value* widen(llvm::Value* stored, DType dtype);
  llvm::Value* narrow(llvm::Value* value, DType from, DType to);
  llvm::Type* storage_type(DType dtype);
  llvm::Value* opaque(llvm::Value* number);
  llvm::Value* address(int64_t buffer, llvm::Value* offset);
  llvm::Value* lane_addresses(int64_t buffer, const Expr& offset);
  llvm::Value* spread(llvm::Value* lanes, int64_t stride);
  llvm::Value* both(llvm::Value* a, llvm::Value* b);  // and of masks; null is true
  template <class Access>
  Access* tag(Access* access, int64_t buffer);
  const kir::Buffer& buffer_named(int64_t id) const;

  llvm::LLVMContext& context_;
  llvm::Module& module_;
  const kir::Kernel& kernel_;
  const Device device_;
  const int64_t lanes_;
  const int64_t team_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::Value*> buffers_;
  std::vector<llvm::MDNode*> own_scope_, foreign_scopes_;  // alias scopes, one list a buffer
  llvm::MDNode* accumulator_scope_ = nullptr;
  llvm::Value* batch_ = nullptr;
  llvm::Value* begin_ = nullptr;
  llvm::Value* end_ = nullptr;
  std::unordered_map<int64_t, llvm::Value*> vars_;
  std::unordered_map<int64_t, Range> var_ranges_;
  std::unordered_map<int64_t, LetBinding> lets_;
  std::unordered_map<int64_t, AccBinding> accs_;
  std::optional<VectorLoop> vector_;
  std::optional<ThreadOps> threads_;       // of a GPU
  std::unordered_set<const void*> waits_;  // statements after which the team's threads meet
  bool in_team_loop_ = false;
  int64_t most_samples_ = 0;  // of a batch on a GPU; 0: unknown
  bool in_first_lane_ = false;
  // Values of the statement under way; nodes are shared between expressions.
  std::unordered_map<const ExprNode*, llvm::Value*> values_, first_lane_values_;
  std::unordered_map<const ExprNode*, bool> uniform_;
};

}  // namespace fluid::emit
