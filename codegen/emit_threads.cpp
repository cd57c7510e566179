#include "codegen/emit_threads.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/gpu.h"

namespace fluid::emit {
namespace {

constexpr unsigned kSharedAddressSpace = 3;

}  // namespace

ThreadOps::ThreadOps(llvm::IRBuilder<>& b, llvm::Function& function, int64_t thread_group_size)
    : b_(b),
      module_(*function.getParent()),
      thread_group_size_(thread_group_size),
      function_(function) {
  llvm::Value* thread = read_special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  llvm::Value* cuda_block = read_special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  llvm::Value* grid_blocks = read_special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
  const int64_t thread_groups = threads_per_block(thread_group_size) / thread_group_size;
  thread_rank_ =
      thread_groups == 1 ? thread : b_.CreateAnd(thread, b_.getInt64(thread_group_size - 1));
  thread_group_index_ = cuda_block;
  thread_group_count_ = grid_blocks;
  if (thread_groups > 1) {
    llvm::Value* many = b_.getInt64(thread_groups);
    thread_group_index_ = b_.CreateAdd(b_.CreateMul(cuda_block, many),
                                       b_.CreateUDiv(thread, b_.getInt64(thread_group_size)));
    thread_group_count_ = b_.CreateMul(grid_blocks, many);
  }
  if (thread_group_size >= kWarp) {
    mask_ = b_.getInt32(~0U);
    return;
  }
  llvm::Value* first = b_.CreateAnd(b_.CreateTrunc(thread, b_.getInt32Ty()),
                                    b_.getInt32(static_cast<uint32_t>(kWarp - thread_group_size)));
  mask_ = b_.CreateShl(b_.getInt32((1U << thread_group_size) - 1), first);
}

llvm::Value* ThreadOps::read_special_register(unsigned id) {
  return b_.CreateZExt(b_.CreateIntrinsic(b_.getInt32Ty(), id, {}), b_.getInt64Ty());
}

llvm::Value* ThreadOps::to_i64_bits(llvm::Value* v) {
  llvm::Type* type = v->getType();
  if (type->isFloatingPointTy())
    v = b_.CreateBitCast(v, b_.getIntNTy(type->getPrimitiveSizeInBits()));
  return b_.CreateZExt(v, b_.getInt64Ty());
}

llvm::Value* ThreadOps::from_i64_bits(llvm::Value* bits, llvm::Type* type) {
  const auto width = static_cast<unsigned>(type->getPrimitiveSizeInBits());
  return b_.CreateBitCast(b_.CreateTrunc(bits, b_.getIntNTy(width)), type);
}

llvm::Value* ThreadOps::shuffle_xor_i32(llvm::Value* v, int64_t distance) {
  constexpr uint32_t kWholeWarp = 0x1f;
  return b_.CreateIntrinsic(
      b_.getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
      {mask_, v, b_.getInt32(static_cast<uint32_t>(distance)), b_.getInt32(kWholeWarp)});
}

llvm::Value* ThreadOps::shuffle_xor(llvm::Value* v, int64_t distance) {
  llvm::Value* bits = to_i64_bits(v);
  llvm::Type *i64 = b_.getInt64Ty(), *i32 = b_.getInt32Ty();
  llvm::Value* low = b_.CreateZExt(shuffle_xor_i32(b_.CreateTrunc(bits, i32), distance), i64);
  if (v->getType()->getPrimitiveSizeInBits() <= 32) return from_i64_bits(low, v->getType());
  llvm::Value* high = shuffle_xor_i32(b_.CreateTrunc(b_.CreateLShr(bits, 32), i32), distance);
  return from_i64_bits(b_.CreateOr(low, b_.CreateShl(b_.CreateZExt(high, i64), 32)), v->getType());
}

void ThreadOps::barrier() {
  if (thread_group_size_ <= kWarp) {
    b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::nvvm_bar_warp_sync, {mask_});
  } else {
#if LLVM_VERSION_MAJOR >= 21
    b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all,
                       {b_.getInt32(0)});
#else
    b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::nvvm_barrier0, {});
#endif
  }
}

llvm::Value* ThreadOps::shared_word_address(llvm::Value* index) {
  if (!shared_) {
    auto* type = llvm::ArrayType::get(b_.getInt64Ty(), kSharedWords);
    shared_ =
        new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                 llvm::UndefValue::get(type), function_.getName() + "_shared",
                                 nullptr, llvm::GlobalValue::NotThreadLocal, kSharedAddressSpace);
  }
  return b_.CreateInBoundsGEP(b_.getInt64Ty(), shared_, index);
}

void ThreadOps::store_shared(llvm::Value* v, llvm::Value* index) {
  b_.CreateStore(to_i64_bits(v), shared_word_address(index));
}

llvm::Value* ThreadOps::load_shared(llvm::Type* type, llvm::Value* index) {
  return from_i64_bits(b_.CreateLoad(b_.getInt64Ty(), shared_word_address(index)), type);
}

}  // namespace fluid::emit
