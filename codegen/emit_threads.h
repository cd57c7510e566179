#pragma once

#include "codegen/llvm_headers.h"
#include "ops/kernel_ir.h"

namespace fluid::emit {

inline constexpr int64_t kWarp = 32;
// Size of the shared memory in 64-bit words: a value and an argmax index for each of up to 32
// warps.
inline constexpr int64_t kSharedWords = 2 * kWarp;

/// Emits GPU thread operations: indices, shuffles, barriers, shared-memory accesses. A thread group
/// runs one block of the kernel IR at a time. A group larger than a warp is a whole CUDA thread
/// block. The threads of a smaller group are in one warp.
class ThreadOps {
 public:
  /// Emits code that computes the index of the thread in its thread group, and the index of the
  /// group. The insertion point of `b` must be in the entry block.
  ThreadOps(llvm::IRBuilder<>& b, llvm::Function& function, int64_t thread_group_size);

  /// Index of the thread in its thread group.
  llvm::Value* thread_rank() const { return thread_rank_; }
  llvm::Value* thread_group_index() const { return thread_group_index_; }
  llvm::Value* thread_group_count() const { return thread_group_count_; }
  /// Butterfly shuffle, as __shfl_xor_sync: returns `v` of the lane whose index is this lane's
  /// index xor `distance`. `distance` must be less than the warp size.
  llvm::Value* shuffle_xor(llvm::Value* v, int64_t distance);
  /// Emits a barrier for the threads of the thread group.
  void barrier();
  /// Stores to or loads from the 64-bit word `index` of shared memory. Values may have any scalar
  /// type.
  void store_shared(llvm::Value* v, llvm::Value* index);
  llvm::Value* load_shared(llvm::Type* type, llvm::Value* index);

 private:
  llvm::Value* read_special_register(unsigned id);
  /// Returns the address of the 64-bit word `index` of shared memory.
  llvm::Value* shared_word_address(llvm::Value* index);
  llvm::Value* shuffle_xor_i32(llvm::Value* v, int64_t distance);
  llvm::Value* to_i64_bits(llvm::Value* v);
  llvm::Value* from_i64_bits(llvm::Value* bits, llvm::Type* type);

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  const int64_t thread_group_size_;
  llvm::Value *thread_rank_, *thread_group_index_, *thread_group_count_;
  llvm::Value* mask_ = nullptr;    // member mask of the thread group, for warp-level operations
  llvm::Value* shared_ = nullptr;  // array in shared memory; created on first use
  llvm::Function& function_;
};

}  // namespace fluid::emit
