#include "codegen/schedule.h"

#include <list>

#include "codegen/schedule_contraction.h"
#include "codegen/schedule_finish.h"

namespace fluid {
namespace {

/// Replaces kErrorBuffer by the index `buffer`. The error words are the last buffer, so their index
/// is known only after all scratch buffers.
void number_error_words(kir::Block& block, int64_t buffer) {
  for (kir::Stmt& s : block) {
    if (auto* store = std::get_if<kir::StoreTo>(&s)) {
      if (store->buffer == kErrorBuffer) store->buffer = buffer;
    } else if (auto* loop = std::get_if<kir::For>(&s)) {
      number_error_words(*loop->body, buffer);
    } else if (auto* branch = std::get_if<kir::If>(&s)) {
      number_error_words(*branch->body, buffer);
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
    const Expr mine = scalar::logical_and(scalar::compare(Scalar::ge, block, first),
                                          scalar::compare(Scalar::lt, block, end));
    const Expr number = b.new_var();
    kir::Block& branch = add_if(b.kernel.body, mine);
    sweep.emit(number, give(branch, number.node().ivalue, block - first));
    first = end;
  }
  b.kernel.blocks = first;
}

}  // namespace

void sweep(KernelBuilder& b) {
  std::list<Sweep> sweeps;
  for (const GroupPart& part : b.group.parts) sweeps.emplace_back(b, part);
  emit_parts(b, sweeps);
  Finish finish(b);
  auto part = b.group.parts.begin();
  double blocks = 0;
  for (const Sweep& s : sweeps) {
    finish.emit(*part++, s);
    const auto n = static_cast<double>(kir::evaluate(s.blocks(), kNominalBatch));
    b.kernel.flops_per_block += n * s.operations_per_block();
    blocks += n;
  }
  b.kernel.flops_per_block /= std::max(blocks, 1.0);
  if (!b.checks) return;
  const auto error = static_cast<int64_t>(b.kernel.buffers.size());
  const auto words = 2 * static_cast<int64_t>(b.group.inputs.size());
  b.kernel.buffers.push_back({"error", i64, words, kir::Buffer::Role::error});
  number_error_words(b.kernel.body, error);
  number_error_words(b.kernel.finish, error);
}

kir::Kernel schedule(const ir::Graph& body, const std::string& name) {
  const Group group = analyze_body(body);
  {
    KernelBuilder b(group, name);
    if (std::optional<Contraction> contraction = Contraction::match(b)) {
      contraction->emit();
      return std::move(b.kernel);
    }
  }
  KernelBuilder b(group, name);
  sweep(b);
  return std::move(b.kernel);
}

}  // namespace fluid
