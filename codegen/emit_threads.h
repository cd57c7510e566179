#pragma once

#include "codegen/kernel_ir.h"
#include "codegen/llvm_headers.h"

namespace fluid::emit {

inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kSharedWords = 2 * kWarp;  // a value and a position a warp

/// The threads of a GPU, which run blocks in teams: their numbers, what they tell each other, where
/// they wait. Teams of more than a warp are the whole group; smaller ones share a warp.
class ThreadOps {
 public:
  /// Emits into the entry block, where `b` stands.
  ThreadOps(llvm::IRBuilder<>& b, llvm::Function& function, int64_t team);

  llvm::Value* rank() const { return rank_; }  ///< within the team
  llvm::Value* first_block() const { return team_number_; }
  llvm::Value* block_step() const { return teams_; }
  /// `v` of the thread whose rank differs from this one's by exclusive or with `distance`, below a
  /// warp's size.
  llvm::Value* exchange(llvm::Value* v, int64_t distance);
  void wait();
  /// Word `index` of the memory that the group shares, for values of any type.
  void put(llvm::Value* v, llvm::Value* index);
  llvm::Value* get(llvm::Type* type, llvm::Value* index);

 private:
  llvm::Value* special(unsigned id);
  llvm::Value* word(llvm::Value* index);
  llvm::Value* exchange_word(llvm::Value* v, int64_t distance);
  llvm::Value* bits_of(llvm::Value* v);
  llvm::Value* from_bits(llvm::Value* bits, llvm::Type* type);

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  const int64_t team_;
  llvm::Value *rank_, *team_number_, *teams_;
  llvm::Value* mask_ = nullptr;    // the team's lanes of its warp
  llvm::Value* shared_ = nullptr;  // made when asked for
  llvm::Function& function_;
};

}  // namespace fluid::emit
