#pragma once

// The emitter translates kernel IR to LLVM IR, for the host CPU and for NVIDIA GPUs. In a vector
// loop a value is uniform (an LLVM scalar) or varying (an LLVM vector with one element per lane). A
// GPU thread often has only one lane; then all values are LLVM scalars.

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/emit_threads.h"
#include "codegen/llvm_headers.h"
#include "ops/kernel_ir.h"

namespace fluid::emit {

enum class Device : uint8_t { cpu, gpu };

/// Version of the emitter, part of the keys of the object cache. Must be incremented when the
/// emitter generates different code for the same kernel IR.
inline constexpr int kEmitterVersion = 17;

class KernelEmitter {
 public:
  /// `avx512`: whether the target is a CPU with AVX-512 F and VL.
  KernelEmitter(llvm::Module& module, const kir::Kernel& kernel, Device device, bool avx512);
  /// Adds the function `symbol` to the module and, if the kernel has a finish function,
  /// `symbol`_finish. CPU: void(ptr buffers, i64 batch, i64 begin, i64 end) runs blocks [begin,
  /// end). GPU: the parameters are the addresses of all buffers, then the batch size. Each thread
  /// group runs blocks in a grid-stride loop. A GPU kernel has no finish function.
  void emit_kernel(const std::string& symbol);

 private:
  struct LetBinding {
    llvm::Value* value;
    Expr expr;
  };
  struct AccumulatorBinding {
    const kir::Accumulator* decl;
    llvm::AllocaInst* value;
    llvm::AllocaInst* argmax_index;  // argmax only: indices of the maxima
    llvm::Type* type;                // LLVM type of one accumulator
    bool varying;
  };
  struct VectorLoop {
    int64_t var;
    llvm::Value* base;       // value of the loop variable in lane 0, i64
    llvm::Value* values;     // vector of the loop variable's values in all lanes
    llvm::Value* mask;       // one i1 per lane, true for an active lane; null: all lanes are active
    int64_t multiple, rest;  // base % multiple == rest; if multiple is 0, base == rest
  };
  /// Inclusive bounds of the value of an i64 expression.
  struct Range {
    int64_t low, high;
  };

  // Defined in emit_kernel.cpp: functions and statements
  void emit_function(const std::string& symbol, const kir::Block& body, bool is_finish);
  void declare_function(const std::string& symbol);  ///< sets function_
  void load_buffer_pointers(llvm::Value* table);
  void emit_block_loop(const kir::Block& body);
  void emit_block(const kir::Block& statements);
  void clear_cached_values();
  void emit(const kir::For& loop);
  void emit(const kir::Let& let);
  void emit(const kir::Accumulator& acc);
  void emit(const kir::Accumulate& statement);
  void emit(const kir::StoreTo& store);
  void emit(const kir::Prefetch& hint);
  void emit(const kir::If& statement);
  void emit_serial_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void emit_unrolled_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void emit_vector_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void emit_vector_iteration(const kir::For& loop, llvm::Value* base, llvm::Value* mask);
  void emit_counted_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step,
                         const std::function<void(llvm::Value*)>& body);
  llvm::Value* active_lane_mask(llvm::Value* remaining);
  /// Returns `end` - `begin` as an LLVM constant, or null if the difference is not constant.
  llvm::Value* constant_difference(const Expr& end, const Expr& begin);
  llvm::Value* acc_address(const AccumulatorBinding& acc, const std::vector<Expr>& index,
                           bool want_index);
  const AccumulatorBinding& find_accumulator(int64_t id) const;
  /// Returns the identity element of `combine`, the initial value of its accumulators.
  llvm::Value* identity(DType dtype, Combine combine);
  llvm::Value* emit_combine(Combine kind, DType dtype, llvm::Value* a, llvm::Value* b);
  /// Returns an i1 per lane: whether (value, argmax_index) replaces (best, best_index) as the
  /// result of an argmax.
  llvm::Value* argmax_improves(DType dtype, llvm::Value* value, llvm::Value* argmax_index,
                               llvm::Value* best, llvm::Value* best_index);
  void store_accumulator(llvm::Value* value, llvm::Value* address);
  llvm::AllocaInst* create_array_alloca(llvm::Type* element, int64_t count);

  // Defined in emit_thread_group.cpp: code for groups of GPU threads
  // (kir::Kernel::thread_group_size)
  void emit_thread_group_prologue();
  void emit_thread_group_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  void emit_thread_group_vector_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end);
  template <class Body>
  void emit_in_one_thread(llvm::Value* condition, const Body& body);
  /// Reduces `value` over all threads of a thread group. For argmax, also reduces `argmax_index`,
  /// which is null otherwise.
  void reduce_over_thread_group(Combine kind, DType dtype, llvm::Value*& value,
                                llvm::Value*& argmax_index);
  void emit_butterfly_reduction(int64_t threads, Combine kind, DType dtype, llvm::Value*& value,
                                llvm::Value*& argmax_index);

  // Defined in emit_scalar.cpp: expressions
  llvm::Value* emit_expr(const Expr& e);
  llvm::Value* emit_node(const Expr& e);
  llvm::Value* emit_constant(const ExprNode& n);
  llvm::Value* emit_binary(const Expr& e);
  llvm::Value* emit_unary(const Expr& e);
  llvm::Value* emit_fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* emit_compare(ScalarOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_min_max(bool maximum, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_integer_division(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_cast(llvm::Value* v, DType from, DType to);
  llvm::Value* emit_float_to_byte(llvm::Value* v, DType to);
  llvm::Value* emit_philox(const Expr& e);
  llvm::Value* emit_lane_reduction(const Expr& e);
  void reduce_over_lanes(Combine kind, DType dtype, llvm::Value*& value,
                         llvm::Value*& argmax_index);
  static bool reads_argmax_index(const AccumulatorBinding& acc, DType dtype);
  llvm::Value* splat(llvm::Value* v);
  /// Returns `v`, splatted to a vector if `shape` is a vector.
  llvm::Value* splat_like(llvm::Value* v, llvm::Value* shape);
  /// If exactly one of `a` and `b` is a vector, splats the other one.
  void match_widths(llvm::Value*& a, llvm::Value*& b);
  llvm::Type* scalar_type(DType dtype);
  /// Returns the type `scalar`, or a vector type with `scalar` elements if `shape` is a vector.
  llvm::Type* type_like(llvm::Type* scalar, llvm::Value* shape);
  /// Emits the value of `e` in lane 0, as a scalar.
  llvm::Value* emit_first_lane(const Expr& e);

  // Defined in emit_index.cpp: analysis of i64 expressions
  bool is_uniform(const Expr& e);
  /// Returns the difference of `e` between adjacent lanes, or nullopt if it is not constant.
  std::optional<int64_t> lane_stride(const Expr& e);
  /// Returns, for each lane, the value of `e` minus its value in lane 0. Returns nullopt if any of
  /// these differences is not constant.
  std::optional<std::vector<int64_t>> lane_offsets(const Expr& e);
  /// Returns the value of `e` in lane 0 modulo `m`, or nullopt if the result is unknown.
  std::optional<int64_t> residue(const Expr& e, int64_t m);
  std::optional<int64_t> constant_value(const Expr& e);  ///< nullopt if `e` is not constant
  std::optional<Range> range(const Expr& e);
  /// Whether `e` is 0 in all lanes that the mask of the vector loop disables.
  bool zero_in_masked_lanes(const Expr& e);
  /// Returns the result of the comparison `e` if the ranges of its operands determine it, else
  /// nullopt.
  std::optional<bool> fold_comparison(const Expr& e);

  // Defined in emit_memory.cpp: loads and stores
  llvm::Value* emit_load(const Expr& e);
  llvm::Value* emit_scalar_load(const Expr& e, llvm::Value* guard);
  llvm::Value* address_or_zeros(llvm::Value* guard, llvm::Value* address);
  llvm::Value* emit_strided_load(const Expr& e, int64_t stride, llvm::Value* mask,
                                 llvm::Value* guard);
  llvm::Value* emit_shuffled_load(const Expr& e, const std::vector<int64_t>& steps,
                                  llvm::Value* mask);
  llvm::Value* shuffled_load_mask(llvm::Value* mask, const std::vector<std::vector<int>>& readers);
  llvm::Value* emit_gather(const Expr& e, llvm::Value* mask);
  void emit_store(const kir::StoreTo& s);
  void emit_error_store(const kir::StoreTo& s);
  /// Returns the known alignment of a vector access whose lane 0 is at element `offset`.
  llvm::Align vector_alignment(DType dtype, const Expr& offset);
  bool may_load_from(const Expr& e, int64_t buffer) const;
  bool emit_interleaved_loop(const kir::For& loop, int64_t begin, int64_t end);
  llvm::Value* interleaved_part(const std::vector<llvm::Value*>& values, int64_t part);
  void emit_strided_store(const kir::StoreTo& s, int64_t stride, llvm::Value* value,
                          llvm::Value* mask);
  /// Convert between the dtype in memory and the compute dtype. The compute dtype of f16 and bf16
  /// is f32.
  llvm::Value* to_compute_type(llvm::Value* stored, DType dtype);
  llvm::Value* to_storage_type(llvm::Value* value, DType from, DType to);
  llvm::Type* storage_type(DType dtype);
  llvm::Value* hide_from_optimizer(llvm::Value* value);
  llvm::Value* element_address(int64_t buffer, llvm::Value* offset);
  llvm::Value* lane_addresses(int64_t buffer, const Expr& offset);
  llvm::Value* spread_lanes(llvm::Value* lanes, int64_t stride);
  llvm::Value* and_masks(llvm::Value* a, llvm::Value* b);  // a & b; a null mask is all true
  template <class Access>
  Access* attach_alias_scopes(Access* access, int64_t buffer);
  const kir::Buffer& find_buffer(int64_t id) const;

  llvm::LLVMContext& context_;
  llvm::Module& module_;
  const kir::Kernel& kernel_;
  const Device device_;
  const bool avx512_;
  const int64_t lanes_;
  const int64_t thread_group_size_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::Value*> buffers_;
  // Scope lists of loads and stores (!alias.scope and !noalias metadata), indexed by buffer.
  std::vector<llvm::MDNode*> alias_scopes_, noalias_scopes_;
  llvm::MDNode* accumulator_scope_ = nullptr;
  llvm::Value* batch_ = nullptr;
  llvm::Value* begin_ = nullptr;
  llvm::Value* end_ = nullptr;
  std::unordered_map<int64_t, llvm::Value*> vars_;
  std::unordered_map<int64_t, Range> var_ranges_;
  std::unordered_map<int64_t, LetBinding> lets_;
  std::unordered_map<int64_t, AccumulatorBinding> accs_;
  std::optional<VectorLoop> vector_;
  std::optional<ThreadOps> threads_;  // emits GPU thread operations; nullopt on a CPU
  // Statements after which the threads of a group need a barrier.
  std::unordered_set<const void*> sync_points_;
  bool in_thread_group_loop_ = false;
  int64_t max_batch_ = 0;  // maximum batch size, used for GPUs only; 0: unknown
  bool in_first_lane_ = false;
  // Caches the LLVM value of each expression node emitted for the current statement, because
  // expressions may share nodes.
  std::unordered_map<const ExprNode*, llvm::Value*> values_, first_lane_values_;
  std::unordered_map<const ExprNode*, bool> uniform_;
};

}  // namespace fluid::emit
