#include "ops/kernel_writer.h"

#include <algorithm>

#include "ops/table.h"

namespace fluid {
namespace {

constexpr int64_t kLinesPerBlock = 64;
// Minimum inner extent for vectorizing over the inner dimensions. With a smaller extent, the outer
// dimensions are vectorized.
constexpr int64_t kMinInnerLanes = 16;

/// Returns an expression that reads the Let or accumulator with the given id.
Expr reference(ScalarOp op, DType dtype, int64_t id, std::vector<Expr> index = {}) {
  ExprNode n{.op = op, .dtype = dtype, .args = std::move(index)};
  n.ivalue = id;
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

/// Returns max(flops, elements) of the op at the nominal batch size. `elements` is the number of
/// elements that the op reads and writes.
double operations_of(const ir::Op& op) {
  std::vector<Type> in, out;
  double elements = 0;
  const auto add = [&](const Type& type, std::vector<Type>& types) {
    types.push_back({type.dtype, type.shape.at(kir::kNominalBatch), {}});
    elements += static_cast<double>(types.back().shape.numel().size);
  };
  for (const Value& v : op.operands) add(v.type(), in);
  for (const ir::Result& r : op.results) add(r.type, out);
  return std::max((*def_of(op).cost)(CostCtx{in, out, op.attrs}).flops, elements);
}

}  // namespace

KernelWriter::KernelWriter(const LoopsCtx& c)
    : c_(c), operands_(c.op().operands.size()), results_(c.op().results.size()) {
  const ir::Op& op = c.op();
  const ir::Graph& body = *op.graph();
  for (const auto& arg : body.ops) {
    if (arg.get() == &op) continue;
    const auto index = static_cast<size_t>(arg->attrs.get<int64_t>("index"));
    if (kernel_.buffers.size() <= index) kernel_.buffers.resize(index + 1);
    const Type& type = arg->results[0].type;
    check(!type.layout, op.name + ": an operand is not in the plain layout");
    kernel_.buffers[index] = {"in" + std::to_string(index), type.dtype, type.shape.numel(),
                              kir::Buffer::Role::in, true};
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (op.operands[i].op() == arg.get()) {
        operands_[i] = {static_cast<int64_t>(index), type.dtype};
      }
    }
  }
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const Value v = body.outputs[i].value;
    results_[static_cast<size_t>(v.index())] = {static_cast<int64_t>(kernel_.buffers.size()),
                                                v.dtype()};
    kernel_.buffers.push_back(
        {"out" + std::to_string(i), v.dtype(), v.shape().numel(), kir::Buffer::Role::out});
  }
  for (const InPlace& pair : loops_in_place_pairs(op)) {
    kernel_.buffers[static_cast<size_t>(pair.in)].noalias = false;
  }
  // A result that is not an output of the kernel is stored in scratch memory.
  for (size_t r = 0; r < results_.size(); ++r) {
    const Type& type = op.results[r].type;
    if (results_[r].buffer < 0) results_[r] = scratch(type.dtype, type.shape.numel());
  }
}

KernelWriter::Array KernelWriter::scratch(DType dtype, Dim elements) {
  check(error_ < 0, "scratch buffers precede the error words");
  const auto index = static_cast<int64_t>(kernel_.buffers.size());
  kernel_.buffers.push_back(
      {"scratch" + std::to_string(index), dtype, elements, kir::Buffer::Role::scratch});
  return {index, dtype};
}

void KernelWriter::blocks(const Expr& count, const LoopBody& body) {
  kernel_.blocks = count;
  kernel_.block_var = next_var_++;
  open_ = {&kernel_.body};
  body(Expr::var(kernel_.block_var));
  open_.clear();
}

void KernelWriter::append_loop(kir::For::Kind kind, const Expr& begin, const Expr& end,
                               const LoopBody& body) {
  const int64_t var = next_var_++;
  auto block = std::make_shared<kir::Block>();
  current_block().push_back({kir::For{var, begin, end, kind, block}});
  open_.push_back(block.get());
  body(Expr::var(var));
  open_.pop_back();
}

void KernelWriter::loop(const Expr& begin, const Expr& end, const LoopBody& body) {
  append_loop(kir::For::Kind::serial, begin, end, body);
}

void KernelWriter::vector_loop(const Expr& begin, const Expr& end, const LoopBody& body) {
  append_loop(kir::For::Kind::vector, begin, end, body);
}

void KernelWriter::unroll(int64_t count, const LoopBody& body) {
  append_loop(kir::For::Kind::unroll, Expr::index(0), Expr::index(count), body);
}

void KernelWriter::branch(const Expr& condition, const Body& body) {
  auto block = std::make_shared<kir::Block>();
  current_block().push_back({kir::If{condition, block}});
  open_.push_back(block.get());
  body();
  open_.pop_back();
}

Expr KernelWriter::load(const Array& a, const Expr& offset) const {
  return reference(ScalarOp::load, compute_dtype(a.dtype), a.buffer, {offset});
}

Expr KernelWriter::load_if(const Expr& guard, const Array& a, const Expr& offset,
                           double fallback) const {
  ExprNode n = load(a, offset).node();
  n.args.push_back(guard);
  n.fvalue = fallback;
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

void KernelWriter::store(const Array& a, const Expr& offset, const Expr& value, const Expr& mask) {
  current_block().push_back({kir::StoreTo{a.buffer, offset, value, mask}});
}

Expr KernelWriter::let(const Expr& value) {
  current_block().push_back({kir::Let{next_let_, value}});
  return reference(ScalarOp::let, value.dtype(), next_let_++);
}

KernelWriter::Accumulators KernelWriter::accumulators(DType dtype, Combine combine,
                                                      const std::vector<int64_t>& dims) {
  current_block().push_back({kir::Accumulator{next_accumulator_, dtype, combine, dims, false}});
  return {next_accumulator_++, dtype};
}

KernelWriter::Accumulators KernelWriter::lane_accumulators(DType dtype, Combine combine) {
  current_block().push_back({kir::Accumulator{next_accumulator_, dtype, combine, {}, true}});
  return {next_accumulator_++, dtype};
}

void KernelWriter::accumulate(const Accumulators& a, const Expr& value,
                              const std::vector<Expr>& index) {
  current_block().push_back({kir::Accumulate{a.id, index, value, {}}});
}

Expr KernelWriter::read(const Accumulators& a, const std::vector<Expr>& index) const {
  return reference(ScalarOp::acc, a.dtype, a.id, index);
}

Expr KernelWriter::total(const Accumulators& a) const {
  return Expr::make(ScalarOp::lanes, a.dtype, {read(a)});
}

Expr KernelWriter::check_index(size_t i, const Expr& index, const Expr& extent, const Expr& mask) {
  if (error_ < 0) {
    error_ = static_cast<int64_t>(kernel_.buffers.size());
    const auto inputs =
        std::ranges::count(kernel_.buffers, kir::Buffer::Role::in, &kir::Buffer::role);
    kernel_.buffers.push_back({"error", i64, 2 * inputs, kir::Buffer::Role::error});
  }
  const Expr bad = scalar::logical_or(scalar::compare(ScalarOp::lt, index, Expr::index(0)),
                                      scalar::compare(ScalarOp::ge, index, extent));
  const Expr used = mask ? scalar::logical_and(mask, bad) : bad;
  const int64_t word = 2 * operands_.at(i).buffer;
  current_block().push_back({kir::StoreTo{error_, Expr::index(word), Expr::index(1), used}});
  current_block().push_back({kir::StoreTo{error_, Expr::index(word + 1), index, used}});
  return scalar::max(Expr::index(0), scalar::min(index, extent - Expr::index(1)));
}

kir::Kernel KernelWriter::kernel() {
  const auto blocks = static_cast<double>(kir::evaluate(kernel_.blocks, kir::kNominalBatch));
  kernel_.flops_per_block = operations_of(c_.op()) / std::max(blocks, 1.0);
  return std::move(kernel_);
}

int64_t preferred_blocks(KernelDevice device) { return device == KernelDevice::cpu ? 64 : 1024; }

AxisView view_along(const Shape& shape, int64_t axis) {
  const auto at = shape.begin() + axis;
  check(!at->batch, "a kernel along the batch dimension");
  return {Shape(shape.begin(), at).numel(), Shape(at + 1, shape.end()).numel(), at->size};
}

void for_each_line(KernelWriter& k, const LowerCtx& c, const AxisView& view,
                   const std::function<void(const Expr& line, const Expr& first)>& body) {
  const Expr outer = c.extent(view.outer), inner = c.extent(view.inner);
  const Expr extent = Expr::index(view.extent), chunk = Expr::index(kLinesPerBlock);
  const auto chunks_of = [&](const Expr& n) {
    return scalar::floordiv(n + Expr::index(kLinesPerBlock - 1), chunk);
  };
  const auto lanes = [&](const Expr& n, const Expr& block, const KernelWriter::LoopBody& line) {
    k.vector_loop(block * chunk, scalar::min(n, (block + Expr::index(1)) * chunk), line);
  };
  if (view.inner.batch || view.inner.size >= kMinInnerLanes) {  // vectorize the inner dimensions
    const Expr chunks = chunks_of(inner);
    k.blocks(outer * chunks, [&](const Expr& block) {
      const Expr o = k.let(scalar::floordiv(block, chunks));
      lanes(inner, k.let(scalar::mod(block, chunks)),
            [&](const Expr& i) { body(o * inner + i, o * extent * inner + i); });
    });
    return;
  }
  k.blocks(chunks_of(outer), [&](const Expr& block) {
    k.loop(Expr::index(0), inner, [&](const Expr& i) {
      lanes(outer, block, [&](const Expr& o) { body(o * inner + i, o * extent * inner + i); });
    });
  });
}

}  // namespace fluid
