#include "codegen/gpu_guard.h"

#include "codegen/schedule_loops.h"

namespace fluid {
namespace {

// Copy kernels: number of threads per block, and number of elements that a block copies.
constexpr int64_t kCopyThreadGroup = 128, kCopyBlock = 1024;

/// Returns the widest integer dtype whose size divides `bytes`.
DType word_of(int64_t bytes) {
  return bytes % 8 == 0 ? DType::i64 : bytes % 4 == 0 ? DType::i32 : DType::u8;
}

}  // namespace

kir::Kernel skip_if_rejected(kir::Kernel kernel) {
  const auto word = static_cast<int64_t>(kernel.buffers.size());
  kernel.buffers.push_back({"refused", DType::i64, 1, kir::Buffer::Role::in, true});
  kir::Block guarded;
  const Expr refused = load(word, DType::i64, Expr::index(0));
  add_if(guarded, Expr::make(ScalarOp::eq, DType::boolean, {refused, Expr::index(0)})) =
      std::move(kernel.body);
  kernel.body = std::move(guarded);
  return kernel;
}

kir::Kernel error_flag_kernel(int64_t count) {
  kir::Kernel kernel{.name = "refusal",
                     .buffers = {{"errors", DType::i64, 2 * count, kir::Buffer::Role::in, true},
                                 {"refused", DType::i64, 1, kir::Buffer::Role::out}},
                     .blocks = Expr::index(1)};
  constexpr int64_t kPair = 1, kSum = 0;
  kernel.body.push_back({kir::Accumulator{kSum, DType::i64}});
  const Expr set = load(0, DType::i64, Expr::var(kPair) * Expr::index(2));
  add_loop(kernel.body, kPair, Expr::index(0), Expr::index(count))
      .push_back({kir::Accumulate{kSum, {}, set, {}}});
  const Expr before = load(1, DType::i64, Expr::index(0));
  const Expr now = read_accumulator(kSum, DType::i64, {}, false);
  kernel.body.push_back({kir::StoreTo{1, Expr::index(0), before + now, {}}});
  return kernel;
}

kir::Kernel copy_kernel(int64_t bytes) {
  const DType word = word_of(bytes);
  const int64_t count = bytes / size_of(word);
  kir::Kernel kernel{.name = "copy",
                     .buffers = {{"from", word, count, kir::Buffer::Role::in, true},
                                 {"to", word, count, kir::Buffer::Role::out}},
                     .blocks = Expr::index((count + kCopyBlock - 1) / kCopyBlock),
                     .vector_width = 1,
                     .thread_group_size = kCopyThreadGroup};
  constexpr int64_t kElement = 1;
  const Expr begin = Expr::var(kernel.block_var) * Expr::index(kCopyBlock);
  const Expr end = min_index(begin + Expr::index(kCopyBlock), Expr::index(count));
  const Expr at = Expr::var(kElement);
  add_loop(kernel.body, kElement, begin, end, kir::For::Kind::vector)
      .push_back({kir::StoreTo{1, at, load(0, word, at), {}}});
  return kernel;
}

}  // namespace fluid
