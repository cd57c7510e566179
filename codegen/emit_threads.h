#pragma once

#include "codegen/kernel_ir.h"
#include "codegen/llvm_headers.h"

namespace fluid::emit {

inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kSharedWords = 2 * kWarp;  // a value and a position per warp

/// Operations of a GPU's threads, which run blocks in teams: indices, shuffles, barriers, shared
/// memory. A team larger than a warp is a whole CUDA block; the threads of a smaller team are in
/// one warp.
class ThreadOps {
 public:
  /// Emits the computation of thread and team indices at the insertion point of `b`, which must be
  /// in the entry block.
  ThreadOps(llvm::IRBuilder<>& b, llvm::Function& function, int64_t team);

  llvm::Value* rank() const { return rank_; }  ///< index of the thread within its team
  llvm::Value* first_block() const { return team_index_; }
  llvm::Value* block_step() const { return teams_; }
  /// Butterfly shuffle: returns `v` of the thread whose rank is this rank xor `distance`.
  /// `distance` is below the warp size.
  llvm::Value* exchange(llvm::Value* v, int64_t distance);
  void wait();
  /// Store to and load from word `index` of shared memory, for values of any type.
  void put(llvm::Value* v, llvm::Value* index);
  llvm::Value* get(llvm::Type* type, llvm::Value* index);

 private:
  llvm::Value* special(unsigned id);
  /// Address of word `index` of shared memory.
  llvm::Value* word(llvm::Value* index);
  llvm::Value* shuffle_word(llvm::Value* v, int64_t distance);
  llvm::Value* bits_of(llvm::Value* v);
  llvm::Value* from_bits(llvm::Value* bits, llvm::Type* type);

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  const int64_t team_;
  llvm::Value *rank_, *team_index_, *teams_;
  llvm::Value* mask_ = nullptr;    // the team's lanes in its warp
  llvm::Value* shared_ = nullptr;  // created on first use
  llvm::Function& function_;
};

}  // namespace fluid::emit
