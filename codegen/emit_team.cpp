// Code for a team of GPU threads that run a block together: shared loops, reductions over the team,
// stores by one thread.

#include "codegen/emit.h"
#include "codegen/gpu.h"
#include "ir/error.h"

namespace fluid::emit {

void KernelEmitter::start_team() {
  threads_.emplace(b_, *b_.GetInsertBlock()->getParent(), team_);
  begin_ = threads_->first_block();
  var_ranges_.clear();
  values_.clear();
  end_ = expr(kernel_.blocks);
}

void KernelEmitter::emit(const kir::StoreTo& s) {
  if (team_ == 1 || in_team_loop_) return store(s);
  // An expression may hold a reduction over the team, which all threads must execute. So
  // expressions are evaluated before the branch of the storing thread.
  for (const Expr& e : {s.value, s.offset, s.mask}) {
    if (e) expr(e);
  }
  one_thread(b_.CreateICmpEQ(threads_->rank(), b_.getInt64(0)), [&] { store(s); });
}

template <class Body>
void KernelEmitter::one_thread(llvm::Value* condition, const Body& body) {
  auto* then = llvm::BasicBlock::Create(context_, "mine", function_);
  auto* done = llvm::BasicBlock::Create(context_, "others", function_);
  b_.CreateCondBr(condition, then, done);
  b_.SetInsertPoint(then);
  body();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

/// Distributes a loop over a team: adjacent threads take adjacent elements, or adjacent vectors.
void KernelEmitter::team_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end) {
  check(!in_team_loop_, "kernel " + kernel_.name + ": vector loops nest");
  in_team_loop_ = true;
  if (lanes_ > 1) {
    team_vector(loop, begin, end);
  } else {
    const auto step = b_.getInt64(static_cast<uint64_t>(team_));
    counted_loop(b_.CreateAdd(begin, threads_->rank()), end, step, [&](llvm::Value* i) {
      vars_[loop.var] = i;
      block(*loop.body);
    });
  }
  in_team_loop_ = false;
}

void KernelEmitter::team_vector(const kir::For& loop, llvm::Value* begin, llvm::Value* end) {
  const auto width = static_cast<uint64_t>(lanes_), team = static_cast<uint64_t>(team_);
  llvm::Value* count = constant_difference(loop.end, loop.begin);
  if (!count) count = b_.CreateSub(end, begin);
  count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, b_.getInt64(0));
  const auto first = residue(loop.begin, lanes_), last = residue(loop.end, lanes_);
  llvm::Value* full = b_.CreateAnd(count, ~(width - 1));
  llvm::Value* full_end = b_.CreateAdd(begin, full);
  llvm::Value* start = b_.CreateAdd(begin, b_.CreateMul(threads_->rank(), b_.getInt64(width)));
  counted_loop(start, full_end, b_.getInt64(width * team),
               [&](llvm::Value* i) { vector_body(loop, i, nullptr); });
  if (first && first == last) return;
  llvm::Value* turn = b_.CreateAnd(b_.CreateUDiv(full, b_.getInt64(width)), team - 1);
  llvm::Value* mine =
      b_.CreateAnd(b_.CreateICmpEQ(turn, threads_->rank()), b_.CreateICmpSLT(full, count));
  one_thread(mine, [&] { vector_body(loop, full_end, tail_mask(b_.CreateSub(count, full))); });
}

void KernelEmitter::combine_team(Combine kind, DType dtype, llvm::Value*& value,
                                 llvm::Value*& position) {
  check(!in_team_loop_, "kernel " + kernel_.name + ": a total is asked for within a vector loop");
  combine_threads(std::min(team_, kWarp), kind, dtype, value, position);
  if (team_ <= kWarp) return;
  // Each warp writes its total to shared memory. Then every warp combines all totals in the same
  // order.
  const int64_t warps = team_ / kWarp;
  llvm::Type* type = value->getType();
  llvm::Value* rank = threads_->rank();
  llvm::Value* lane = b_.CreateAnd(rank, b_.getInt64(kWarp - 1));
  llvm::Value* warp = b_.CreateUDiv(rank, b_.getInt64(kWarp));
  auto of_position = [&](llvm::Value* i) { return b_.CreateAdd(i, b_.getInt64(kWarp)); };
  one_thread(b_.CreateICmpEQ(lane, b_.getInt64(0)), [&] {
    threads_->put(value, warp);
    if (position) threads_->put(position, of_position(warp));
  });
  threads_->wait();
  llvm::Value* other = b_.CreateAnd(rank, b_.getInt64(static_cast<uint64_t>(warps - 1)));
  value = threads_->get(type, other);
  if (position) position = threads_->get(b_.getInt64Ty(), of_position(other));
  threads_->wait();  // waits before the shared words are overwritten
  combine_threads(warps, kind, dtype, value, position);
}

/// Butterfly reduction over the threads. The operands are ordered, so that all threads get the same
/// bits.
void KernelEmitter::combine_threads(int64_t threads, Combine kind, DType dtype, llvm::Value*& value,
                                    llvm::Value*& position) {
  for (int64_t distance = threads / 2; distance >= 1; distance /= 2) {
    llvm::Value* other = threads_->exchange(value, distance);
    if (position) {
      llvm::Value* other_position = threads_->exchange(position, distance);
      llvm::Value* better = argmax_improves(dtype, other, other_position, value, position);
      value = b_.CreateSelect(better, other, value);
      position = b_.CreateSelect(better, other_position, position);
    } else if (kind == Combine::sum) {
      value = combine(kind, dtype, value, other);
    } else {
      llvm::Value* mine =
          b_.CreateAnd(threads_->rank(), b_.getInt64(static_cast<uint64_t>(distance)));
      llvm::Value* upper = b_.CreateICmpNE(mine, b_.getInt64(0));
      value = combine(kind, dtype, b_.CreateSelect(upper, other, value),
                      b_.CreateSelect(upper, value, other));
    }
  }
}

}  // namespace fluid::emit
