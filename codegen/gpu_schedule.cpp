// Schedules fused groups for GPUs. Chooses the thread group size and vector width of their kernels.
// The row-wise schedule (Sweep) uses smaller blocks for a GPU than for a CPU. It divides the
// iterations of vector loops among the threads of a group.

#include <algorithm>
#include <bit>

#include "codegen/gpu.h"
#include "codegen/gpu_contraction.h"
#include "codegen/gpu_stages.h"
#include "codegen/schedule_sweep.h"
#include "ops/loops.h"

namespace fluid {
namespace {

// Maximum thread group size. The registers of an SM suffice for several groups of this size.
constexpr int64_t kMaxThreadGroup = 256;
// Maximum number of threads that cooperate on a result if the kernel has only one block.
constexpr int64_t kMaxSingleThreadGroup = 512;
constexpr int64_t kMaxLanes = 8;
constexpr int64_t kLargeBatch = int64_t{1} << 20;

/// Calls `visit` for each vector loop in `block` and its nested blocks.
void for_each_vector_loop(const kir::Block& block,
                          const std::function<void(const kir::For&)>& visit) {
  for (const kir::Stmt& s : block) {
    if (auto* loop = std::get_if<kir::For>(&s)) {
      if (loop->kind == kir::For::Kind::vector) visit(*loop);
      for_each_vector_loop(*loop->body, visit);
    } else if (auto* branch = std::get_if<kir::If>(&s)) {
      for_each_vector_loop(*branch->body, visit);
    }
  }
}

bool has_variables(const Expr& e) {
  return any_leaf(e, [](const Expr& leaf) {
    return leaf.op() == ScalarOp::var || leaf.op() == ScalarOp::let || leaf.op() == ScalarOp::load;
  });
}

bool may_depend_on(const Expr& e, int64_t var) {
  return any_leaf(e, [&](const Expr& leaf) {
    return leaf.op() == ScalarOp::let || (leaf.op() == ScalarOp::var && leaf.node().ivalue == var);
  });
}

/// Returns an upper bound on the trip count of a loop for a batch size of kLargeBatch, or INT64_MAX
/// if the bound is unknown.
int64_t iterations(const Expr& begin, const Expr& end) {
  if (end.op() == ScalarOp::min) {
    return std::min(iterations(begin, end.args()[0]), iterations(begin, end.args()[1]));
  }
  if (!has_variables(end)) return kir::evaluate(end, kLargeBatch);
  const auto last = as_affine(end), first = as_affine(begin);
  if (last && first && last->terms == first->terms) return last->offset - first->offset;
  return INT64_MAX;
}

bool multiple_of(const Expr& e, int64_t n) {
  const std::vector<Expr>& args = e.args();
  switch (e.op()) {
    case ScalarOp::constant:
      return e.node().ivalue % n == 0;
    case ScalarOp::mul:
      return multiple_of(args[0], n) || multiple_of(args[1], n);
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::min:
    case ScalarOp::max:
      return multiple_of(args[0], n) && multiple_of(args[1], n);
    default:
      return false;
  }
}

/// Whether `offset` is independent of `var`, or is contiguous and aligned. Contiguous and aligned
/// means that `offset` grows by 1 with `var` and is a multiple of `lanes` if `var` is a multiple of
/// `lanes`.
bool is_vectorizable(const Expr& offset, int64_t var, int64_t lanes) {
  const std::optional<Affine> affine = as_affine(offset);
  if (!affine) return false;
  const int64_t step = affine->coefficient(var);
  if (step == 0) return true;
  return step == 1 && affine->offset % lanes == 0 &&
         std::ranges::all_of(affine->terms, [&](const auto& term) {
           return term.first == var || term.second % lanes == 0;
         });
}

/// Returns the vector width of each thread, in elements. If all accesses in vector loops are
/// contiguous and aligned, this is the number of elements of the widest dtype in 16 bytes.
/// Otherwise the width is 1.
int64_t choose_vector_width(const kir::Kernel& kernel) {
  int64_t widest = 1;
  auto bytes = [&](int64_t buffer) {
    return size_of(kernel.buffers[static_cast<size_t>(buffer)].dtype);
  };
  std::vector<std::pair<const kir::For*, Expr>> offsets;
  bool plain = true;
  for_each_vector_loop(kernel.body, [&](const kir::For& loop) {
    auto touch = [&](const Expr& offset, int64_t buffer) {
      if (has_variables(offset)) widest = std::max(widest, bytes(buffer));
      offsets.push_back({&loop, offset});
    };
    for_each_expr(*loop.body, [&](const Expr& root) {
      for_each_node(root, [&](const Expr& e) {
        if (e.op() != ScalarOp::load) return;
        plain = plain && e.args().size() == 1;
        touch(e.args()[0], e.node().ivalue);
      });
    });
    std::function<void(const kir::Block&)> stores = [&](const kir::Block& block) {
      for (const kir::Stmt& s : block) {
        if (auto* inner = std::get_if<kir::For>(&s)) {
          // A loop bound that depends on the vector loop's variable would differ from lane to lane.
          plain = plain && !may_depend_on(inner->begin, loop.var);
          stores(*inner->body);
        }
        if (auto* branch = std::get_if<kir::If>(&s)) stores(*branch->body);
        auto* store = std::get_if<kir::StoreTo>(&s);
        if (store == nullptr) continue;
        plain = plain && !store->mask;
        touch(store->offset, store->buffer);
      }
    };
    stores(*loop.body);
  });
  if (!plain || offsets.empty()) return 1;
  const int64_t lanes = std::min(16 / widest, kMaxLanes);
  const bool fits = std::ranges::all_of(offsets, [&](const auto& o) {
    return multiple_of(o.first->begin, lanes) && is_vectorizable(o.second, o.first->var, lanes);
  });
  return fits ? lanes : 1;
}

void choose_thread_group_size(kir::Kernel& kernel) {
  kernel.vector_width = choose_vector_width(kernel);
  int64_t most = 1;
  for_each_vector_loop(kernel.body, [&](const kir::For& loop) {
    most = std::max(most, iterations(loop.begin, loop.end));
  });
  const int64_t limit = is_constant(kernel.blocks, 1) ? kMaxSingleThreadGroup : kMaxThreadGroup;
  const int64_t threads = (std::min(most, limit * kMaxLanes) - 1) / kernel.vector_width + 1;
  kernel.thread_group_size =
      std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(threads))), limit);
}

}  // namespace

std::vector<kir::Kernel> schedule_gpu(const ir::Graph& body, const std::string& name) {
  if (const ir::Op* op = loops_op(body)) {
    std::vector<kir::Kernel> kernels =
        split_off_finish(loops_kernel(*op, name, KernelDevice::cuda));
    for (kir::Kernel& kernel : kernels) choose_thread_group_size(kernel);
    return kernels;
  }
  const Group group = analyze_fused_body(body);
  {
    KernelBuilder b(group, name, kGpu);
    if (std::optional<GpuContraction> contraction = GpuContraction::match(b)) {
      return contraction->emit();
    }
  }
  KernelBuilder b(group, name, kGpu);
  emit_sweeps(b);
  std::vector<kir::Kernel> kernels = split_off_finish(std::move(b.kernel));
  for (kir::Kernel& kernel : kernels) choose_thread_group_size(kernel);
  if (!leaves_gpu_idle(group, kernels)) return kernels;
  kernels = schedule_in_stages(group, name);
  for (kir::Kernel& kernel : kernels) choose_thread_group_size(kernel);
  return kernels;
}

}  // namespace fluid
