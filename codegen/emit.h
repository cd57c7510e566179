#pragma once

// The emitter: kernel IR to LLVM IR, one class for the host CPU and NVIDIA GPUs. In a vector loop a
// value is uniform (an LLVM scalar) or varying (an LLVM vector of `lanes` elements). Its LLVM type
// tells which. GPU threads often have one lane; then all values are uniform.

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/emit_threads.h"
#include "codegen/kernel_ir.h"
#include "codegen/llvm_headers.h"

namespace fluid::emit {

enum class Device : uint8_t { cpu, gpu };

/// Part of the object cache's key. Increment it when the same kernel IR gives other code.
inline constexpr int kEmitterVersion = 10;

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const kir::Kernel& kernel, Device device);
  /// Adds the function `symbol` and, when the kernel has a finish, `symbol`_finish.
  /// CPU: void(ptr buffers, i64 batch, i64 begin, i64 end) runs blocks [begin, end).
  /// GPU: the parameters are the buffers by value, then the batch. Teams stride over the blocks;
  /// there is no finish.
  void run(const std::string& symbol);

 private:
  struct LetBinding {
    llvm::Value* value;
    Expr expr;
  };
  struct AccBinding {
    const kir::Acc* decl;
    llvm::AllocaInst* value;
    llvm::AllocaInst* position;  // for argmax, else null
    llvm::Type* type;            // type of one element
    bool varying;
  };
  struct VectorLoop {
    int64_t var;
    llvm::Value* base;       // value in lane 0, i64
    llvm::Value* values;     // value in each lane
    llvm::Value* mask;       // null: all lanes run
    int64_t multiple, rest;  // base % multiple == rest; if multiple is 0, base == rest
  };
  /// Inclusive bounds of an i64 value.
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
  /// Whether the candidate (value, position) replaces an argmax's best so far.
  llvm::Value* argmax_improves(DType dtype, llvm::Value* value, llvm::Value* position,
                               llvm::Value* best, llvm::Value* best_position);
  void keep(llvm::Value* value, llvm::Value* address);
  llvm::AllocaInst* allocate(llvm::Type* element, int64_t count);

  // emit_team.cpp: code for teams of GPU threads
  void start_team();
  void team_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void team_vector(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  template <class Body>
  void one_thread(llvm::Value* condition, const Body& body);
  /// Combines the values, and the positions if not null, of all threads of the team.
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
  llvm::Value* reduce_lanes(const Expr& e);
  void combine_lanes(Combine kind, DType dtype, llvm::Value*& value, llvm::Value*& position);
  static bool reads_position(const AccBinding& acc, DType dtype);
  llvm::Value* splat(llvm::Value* v);
  llvm::Value* like(llvm::Value* v, llvm::Value* shape);  // v, splatted when `shape` is a vector
  void unify(llvm::Value*& a, llvm::Value*& b);
  llvm::Type* scalar_type(DType dtype);
  llvm::Type* shaped(llvm::Type* scalar, llvm::Value* shape);
  /// The value of `e` in lane 0, as a scalar.
  llvm::Value* first_lane(const Expr& e);

  // emit_index.cpp: analysis of i64 expressions
  bool uniform(const Expr& e);
  /// The difference of `e` between adjacent lanes, if it is constant.
  std::optional<int64_t> stride(const Expr& e);
  /// The difference of `e` between each lane and lane 0, if all are constant.
  std::optional<std::vector<int64_t>> lane_steps(const Expr& e);
  /// The value of `e` in lane 0 modulo `m`, if it is known.
  std::optional<int64_t> residue(const Expr& e, int64_t m);
  std::optional<int64_t> fixed(const Expr& e);  ///< the value of `e`, if it is constant
  std::optional<Range> range(const Expr& e);
  /// Whether `e` is 0 in lanes that the loop's mask disables.
  bool zero_in_masked_lanes(const Expr& e);
  /// The result of a comparison, if the operands' ranges determine it in every lane.
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
  /// Alignment of a vector access whose lane 0 is at `offset`.
  llvm::Align vector_alignment(DType dtype, const Expr& offset);
  void strided_store(const kir::StoreTo& s, int64_t stride, llvm::Value* value, llvm::Value* mask);
  llvm::Value* widen(llvm::Value* stored, DType dtype);
  llvm::Value* narrow(llvm::Value* value, DType from, DType to);
  llvm::Type* storage_type(DType dtype);
  llvm::Value* opaque(llvm::Value* number);
  llvm::Value* address(int64_t buffer, llvm::Value* offset);
  llvm::Value* lane_addresses(int64_t buffer, const Expr& offset);
  llvm::Value* spread(llvm::Value* lanes, int64_t stride);
  llvm::Value* both(llvm::Value* a, llvm::Value* b);  // logical and of masks; null is true
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
  // Alias scopes and noalias lists, one per buffer.
  std::vector<llvm::MDNode*> own_scope_, foreign_scopes_;
  llvm::MDNode* accumulator_scope_ = nullptr;
  llvm::Value* batch_ = nullptr;
  llvm::Value* begin_ = nullptr;
  llvm::Value* end_ = nullptr;
  std::unordered_map<int64_t, llvm::Value*> vars_;
  std::unordered_map<int64_t, Range> var_ranges_;
  std::unordered_map<int64_t, LetBinding> lets_;
  std::unordered_map<int64_t, AccBinding> accs_;
  std::optional<VectorLoop> vector_;
  std::optional<ThreadOps> threads_;       // set on a GPU
  std::unordered_set<const void*> waits_;  // statements after which the team's threads synchronize
  bool in_team_loop_ = false;
  int64_t max_batch_ = 0;  // largest batch on a GPU; 0: unknown
  bool in_first_lane_ = false;
  // Values of nodes in the current statement. Expressions share nodes.
  std::unordered_map<const ExprNode*, llvm::Value*> values_, first_lane_values_;
  std::unordered_map<const ExprNode*, bool> uniform_;
};

}  // namespace fluid::emit
