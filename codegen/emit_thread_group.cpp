// Code generation for GPU thread groups of kir::Kernel::thread_group_size threads. The threads of a
// group run a block of the kernel IR together. They divide the iterations of vector loops among
// themselves and reduce over the group; one thread stores.

#include "codegen/emit.h"
#include "codegen/gpu.h"
#include "ir/error.h"

namespace fluid::emit {

void KernelEmitter::emit_thread_group_prologue() {
  threads_.emplace(b_, *b_.GetInsertBlock()->getParent(), thread_group_size_);
  begin_ = threads_->thread_group_index();
  var_ranges_.clear();
  values_.clear();
  end_ = emit_expr(kernel_.blocks);
}

void KernelEmitter::emit(const kir::StoreTo& s) {
  if (thread_group_size_ == 1 || in_thread_group_loop_) return emit_store(s);
  // Evaluates the expressions in all threads, before the branch that only one thread takes. The
  // reductions in these expressions need all threads of the group.
  for (const Expr& e : {s.value, s.offset, s.mask}) {
    if (e) emit_expr(e);
  }
  emit_in_one_thread(b_.CreateICmpEQ(threads_->thread_rank(), b_.getInt64(0)),
                     [&] { emit_store(s); });
}

template <class Body>
void KernelEmitter::emit_in_one_thread(llvm::Value* condition, const Body& body) {
  auto* then = llvm::BasicBlock::Create(context_, "mine", function_);
  auto* done = llvm::BasicBlock::Create(context_, "others", function_);
  b_.CreateCondBr(condition, then, done);
  b_.SetInsertPoint(then);
  body();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

/// Distributes the iterations of a loop over the threads of a thread group. Adjacent threads
/// process adjacent elements, or adjacent vectors.
void KernelEmitter::emit_thread_group_loop(const kir::For& loop, llvm::Value* begin,
                                           llvm::Value* end) {
  check(!in_thread_group_loop_, "kernel " + kernel_.name + ": vector loops nest");
  in_thread_group_loop_ = true;
  if (lanes_ > 1) {
    emit_thread_group_vector_loop(loop, begin, end);
  } else {
    const auto step = b_.getInt64(static_cast<uint64_t>(thread_group_size_));
    emit_counted_loop(b_.CreateAdd(begin, threads_->thread_rank()), end, step, [&](llvm::Value* i) {
      vars_[loop.var] = i;
      emit_block(*loop.body);
    });
  }
  in_thread_group_loop_ = false;
}

void KernelEmitter::emit_thread_group_vector_loop(const kir::For& loop, llvm::Value* begin,
                                                  llvm::Value* end) {
  const auto width = static_cast<uint64_t>(lanes_),
             threads = static_cast<uint64_t>(thread_group_size_);
  llvm::Value* count = constant_difference(loop.end, loop.begin);
  if (!count) count = b_.CreateSub(end, begin);
  count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, b_.getInt64(0));
  const auto first = residue(loop.begin, lanes_), last = residue(loop.end, lanes_);
  llvm::Value* full = b_.CreateAnd(count, ~(width - 1));
  llvm::Value* full_end = b_.CreateAdd(begin, full);
  llvm::Value* start =
      b_.CreateAdd(begin, b_.CreateMul(threads_->thread_rank(), b_.getInt64(width)));
  emit_counted_loop(start, full_end, b_.getInt64(width * threads),
                    [&](llvm::Value* i) { emit_vector_iteration(loop, i, nullptr); });
  if (first && first == last) return;
  llvm::Value* turn = b_.CreateAnd(b_.CreateUDiv(full, b_.getInt64(width)), threads - 1);
  llvm::Value* mine =
      b_.CreateAnd(b_.CreateICmpEQ(turn, threads_->thread_rank()), b_.CreateICmpSLT(full, count));
  emit_in_one_thread(mine, [&] {
    emit_vector_iteration(loop, full_end, active_lane_mask(b_.CreateSub(count, full)));
  });
}

void KernelEmitter::reduce_over_thread_group(Combine kind, DType dtype, llvm::Value*& value,
                                             llvm::Value*& argmax_index) {
  check(!in_thread_group_loop_,
        "kernel " + kernel_.name + ": a total is asked for within a vector loop");
  emit_butterfly_reduction(std::min(thread_group_size_, kWarp), kind, dtype, value, argmax_index);
  if (thread_group_size_ <= kWarp) return;
  // Each warp writes its total to shared memory. Then every warp combines all totals in the same
  // order.
  const int64_t warps = thread_group_size_ / kWarp;
  llvm::Type* type = value->getType();
  llvm::Value* rank = threads_->thread_rank();
  llvm::Value* lane = b_.CreateAnd(rank, b_.getInt64(kWarp - 1));
  llvm::Value* warp = b_.CreateUDiv(rank, b_.getInt64(kWarp));
  auto of_argmax_index = [&](llvm::Value* i) { return b_.CreateAdd(i, b_.getInt64(kWarp)); };
  emit_in_one_thread(b_.CreateICmpEQ(lane, b_.getInt64(0)), [&] {
    threads_->store_shared(value, warp);
    if (argmax_index) threads_->store_shared(argmax_index, of_argmax_index(warp));
  });
  threads_->barrier();
  llvm::Value* other = b_.CreateAnd(rank, b_.getInt64(static_cast<uint64_t>(warps - 1)));
  value = threads_->load_shared(type, other);
  if (argmax_index) argmax_index = threads_->load_shared(b_.getInt64Ty(), of_argmax_index(other));
  threads_->barrier();  // all warps have read the totals; shared memory may be reused
  emit_butterfly_reduction(warps, kind, dtype, value, argmax_index);
}

/// Emits a butterfly reduction (xor shuffles) over `threads` threads. Orders the operands of min
/// and max, so that all threads get bit-identical results.
void KernelEmitter::emit_butterfly_reduction(int64_t threads, Combine kind, DType dtype,
                                             llvm::Value*& value, llvm::Value*& argmax_index) {
  for (int64_t distance = threads / 2; distance >= 1; distance /= 2) {
    llvm::Value* other = threads_->shuffle_xor(value, distance);
    if (argmax_index) {
      llvm::Value* other_index = threads_->shuffle_xor(argmax_index, distance);
      llvm::Value* better = argmax_improves(dtype, other, other_index, value, argmax_index);
      value = b_.CreateSelect(better, other, value);
      argmax_index = b_.CreateSelect(better, other_index, argmax_index);
    } else if (kind == Combine::sum || kind == Combine::prod) {
      value = emit_combine(kind, dtype, value, other);
    } else {
      llvm::Value* mine =
          b_.CreateAnd(threads_->thread_rank(), b_.getInt64(static_cast<uint64_t>(distance)));
      llvm::Value* upper = b_.CreateICmpNE(mine, b_.getInt64(0));
      value = emit_combine(kind, dtype, b_.CreateSelect(upper, other, value),
                           b_.CreateSelect(upper, value, other));
    }
  }
}

}  // namespace fluid::emit
