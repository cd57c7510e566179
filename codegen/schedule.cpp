#include "codegen/schedule.h"

#include <algorithm>
#include <list>

#include "codegen/generic_fill.h"
#include "codegen/schedule_contraction.h"
#include "codegen/schedule_product.h"
#include "codegen/schedule_split.h"
#include "codegen/schedule_sweep.h"
#include "codegen/split_loops.h"
#include "ops/loops.h"

namespace fluid {
namespace {

using Kind = kir::For::Kind;

constexpr int64_t kMinVectorExtent = 8;  // minimum extent of a vectorized loop

kir::Block& loop_over(const KernelBuilder& b, const Vars& vars, kir::Block& out, bool vector) {
  kir::Block* at = &out;
  for (size_t i = 0; i < vars.size(); ++i) {
    const Dim& extent = b.extent(vars[i]);
    const bool lanes =
        vector && i + 1 == vars.size() && (extent.batch || extent.size >= kMinVectorExtent);
    at = &add_loop(*at, vars[i], Expr::index(0), extent_expr(extent),
                   lanes ? Kind::vector : Kind::serial);
  }
  return *at;
}

/// Emits Kernel::finish, which runs once after all blocks. Kernel::finish combines the partial
/// results of the blocks in a fixed order, then computes the roots that read the combined results.
class Finish {
 public:
  explicit Finish(KernelBuilder& builder) : b_(builder) {}
  /// Appends the code for one GroupPart to Kernel::finish.
  void emit(const GroupPart& part, const Sweep& sweep);

 private:
  struct ResultBuffers {  ///< index of the buffer that holds each result of a reduction
    int64_t buffers[2] = {-1, -1};
  };
  void combine_partials(const PartialResults& partial, const Expr& blocks);
  void emit_reduction(const FlatRoot& root);
  void emit_maps(std::vector<FlatRoot> roots);
  void store_result(const FlatRoot& root, int64_t accumulator_id, bool per_lane, kir::Block& out);
  FlatRoot flatten_root(int id);
  Expr load_stored(const Expr& let);

  KernelBuilder& b_;
  std::map<int, ResultBuffers> stored_;
};

void Finish::emit(const GroupPart& part, const Sweep& sweep) {
  for (const PartialResults& p : sweep.partials()) combine_partials(p, sweep.blocks());
  // Elementwise roots, grouped by equal loop variables.
  std::vector<std::vector<FlatRoot>> maps;
  for (int id : part.roots) {
    if (!b_.group.roots[static_cast<size_t>(id)].in_finish_phase) continue;
    FlatRoot root = flatten_root(id);
    if (root.is_reduction()) {
      emit_reduction(root);
      continue;
    }
    auto same = std::ranges::find_if(
        maps, [&](const std::vector<FlatRoot>& m) { return m.front().out == root.out; });
    if (same == maps.end()) same = maps.insert(same, std::vector<FlatRoot>());
    same->push_back(std::move(root));
  }
  for (auto& roots : maps) emit_maps(std::move(roots));
}

FlatRoot Finish::flatten_root(int id) {
  return flatten(b_, id, [&](const Expr& let) { return load_stored(let); });
}

Expr Finish::load_stored(const Expr& let) {
  const ReductionRead read = reduction_of(let);
  return load_reduction_result(b_.group, let, stored_.at(read.root).buffers[read.result]);
}

/// Stores one element of each result of a reduction to the outputs. Also stores the element to
/// scratch buffers if later roots in Kernel::finish read it.
void Finish::store_result(const FlatRoot& root, int64_t accumulator_id, bool per_lane,
                          kir::Block& out) {
  const FusionRoot& source = *root.source;
  for (size_t r = 0; r < source.outputs.size(); ++r) {
    const DType dtype = compute_dtype(source.op->results[r].type.dtype);
    const Expr result = r == 1 ? read_argmax_index(accumulator_id, root.acc_dtype, {}, per_lane)
                               : read_accumulator(accumulator_id, root.acc_dtype, {}, per_lane);
    const Expr value = append_let(b_, scalar::cast(result, dtype), out);
    if (source.read_by_root) {
      int64_t& buffer = stored_[root.id].buffers[r];
      if (buffer < 0) buffer = b_.add_scratch_buffer(dtype, root.result_elements);
      out.push_back({kir::StoreTo{buffer, root.result_index, value, {}}});
    }
    for (size_t i = 0; i < root.stores.size(); ++i) {
      if (root.stores[i].first != static_cast<int>(r)) continue;
      out.push_back({kir::StoreTo{root.buffers[i], root.stores[i].second, value, {}}});
    }
  }
}

void Finish::combine_partials(const PartialResults& p, const Expr& blocks) {
  const FlatRoot& root = *p.root;
  kir::Block& element = loop_over(b_, root.out, b_.kernel.finish, p.block_major);
  const kir::Accumulator acc{
      b_.next_accumulator++, root.acc_dtype, *root.source->combine, {}, !p.block_major};
  element.push_back({acc});
  const int64_t v = b_.next_var++;
  kir::Block& at =
      add_loop(element, v, Expr::index(0), blocks, p.block_major ? Kind::serial : Kind::vector);
  const Expr offset = p.block_major
                          ? Expr::var(v) * extent_expr(root.result_elements) + root.result_index
                          : root.result_index * Expr::index(p.stride) + Expr::var(v);
  const Expr argmax_index = p.argmax_indices < 0 ? Expr() : load(p.argmax_indices, i64, offset);
  at.push_back({kir::Accumulate{acc.id, {}, load(p.buffer, root.acc_dtype, offset), argmax_index}});
  store_result(root, acc.id, acc.per_lane, element);
}

void Finish::emit_reduction(const FlatRoot& root) {
  kir::Block& element = loop_over(b_, root.out, b_.kernel.finish, false);
  const bool lanes = !root.reduce.empty() &&
                     b_.extent(root.reduce.back()).at(kMinVectorExtent) >= kMinVectorExtent;
  const kir::Accumulator acc{
      b_.next_accumulator++, root.acc_dtype, *root.source->combine, {}, lanes};
  element.push_back({acc});
  kir::Block& at = loop_over(b_, root.reduce, element, true);
  emit_bounds_checks(root, at);
  at.push_back({kir::Accumulate{acc.id, {}, root.body, root.argmax_index}});
  store_result(root, acc.id, lanes, element);
}

void Finish::emit_maps(std::vector<FlatRoot> roots) {
  kir::Block& at = loop_over(b_, roots.front().out, b_.kernel.finish, true);
  std::vector<Expr*> bodies;
  for (FlatRoot& s : roots) {
    emit_bounds_checks(s, at);
    bodies.push_back(&s.body);
  }
  eliminate_common_subexpressions(b_, bodies, at);
  for (FlatRoot& s : roots) s.body = append_let(b_, s.body, at);
  for (const FlatRoot& s : roots) {
    at.push_back({kir::StoreTo{s.buffers[0], s.stores[0].second, s.body, {}}});
  }
}

/// Replaces kErrorBuffer by `buffer`, the index of the buffer of error words. The error words are
/// the last buffer, so their index is known only after all scratch buffers exist.
void set_error_buffer(kir::Block& block, int64_t buffer) {
  for (kir::Stmt& s : block) {
    if (auto* store = std::get_if<kir::StoreTo>(&s)) {
      if (store->buffer == kErrorBuffer) store->buffer = buffer;
    } else if (auto* loop = std::get_if<kir::For>(&s)) {
      set_error_buffer(*loop->body, buffer);
    } else if (auto* branch = std::get_if<kir::If>(&s)) {
      set_error_buffer(*branch->body, buffer);
    }
  }
}

void emit_parts(KernelBuilder& b, std::list<Sweep>& sweeps) {
  const Expr block = b.new_var();
  b.kernel.block_var = block.node().ivalue;
  if (sweeps.size() == 1) {
    b.kernel.blocks = sweeps.front().blocks();
    sweeps.front().emit(block, b.kernel.body);
    return;
  }
  Expr first = Expr::index(0);
  for (Sweep& sweep : sweeps) {
    const Expr end = first + sweep.blocks();
    const Expr mine = scalar::logical_and(scalar::compare(ScalarOp::ge, block, first),
                                          scalar::compare(ScalarOp::lt, block, end));
    const Expr block_index = b.new_var();
    kir::Block& branch = add_if(b.kernel.body, mine);
    sweep.emit(block_index, bind_var(branch, block_index.node().ivalue, block - first));
    first = end;
  }
  b.kernel.blocks = first;
}

}  // namespace

void emit_sweeps(KernelBuilder& b) {
  std::list<Sweep> sweeps;
  for (const GroupPart& part : b.group.parts) sweeps.emplace_back(b, part);
  emit_parts(b, sweeps);
  Finish finish(b);
  auto part = b.group.parts.begin();
  double blocks = 0;
  for (const Sweep& s : sweeps) {
    finish.emit(*part++, s);
    const auto n = static_cast<double>(kir::evaluate(s.blocks(), kir::kNominalBatch));
    b.kernel.flops_per_block += n * s.operations_per_block();
    blocks += n;
  }
  b.kernel.flops_per_block /= std::max(blocks, 1.0);
  if (!b.has_checks) return;
  const auto error = static_cast<int64_t>(b.kernel.buffers.size());
  const auto words = 2 * static_cast<int64_t>(b.group.inputs.size());
  b.kernel.buffers.push_back({"error", i64, words, kir::Buffer::Role::error});
  set_error_buffer(b.kernel.body, error);
  set_error_buffer(b.kernel.finish, error);
}

kir::Kernel schedule(const ir::Graph& body, const std::string& name, int64_t accumulators) {
  if (const ir::Op* op = loops_op(body)) {
    return loops_kernel(*op, name, KernelDevice::cpu, accumulators);
  }
  const Group group = analyze_fused_body(body);
  {
    KernelBuilder b(group, name, {.accumulators = accumulators});
    if (std::optional<SplitContraction> contraction = SplitContraction::match(b)) {
      contraction->emit();
      return std::move(b.kernel);
    }
  }
  {
    KernelBuilder b(group, name, {.accumulators = accumulators});
    if (std::optional<MatrixProduct> product = MatrixProduct::match(b)) {
      product->emit();
      return std::move(b.kernel);
    }
  }
  {
    KernelBuilder b(group, name, {.accumulators = accumulators});
    if (std::optional<Contraction> contraction = Contraction::match(b)) {
      contraction->emit();
      return std::move(b.kernel);
    }
  }
  KernelBuilder b(group, name, {.accumulators = accumulators});
  emit_sweeps(b);
  split_loops(b);
  make_generic_if_fill(b);
  return std::move(b.kernel);
}

}  // namespace fluid
