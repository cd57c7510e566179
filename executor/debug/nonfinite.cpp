#include "executor/debug/nonfinite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "executor/host/arena.h"
#include "executor/session/prepared_step.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

void widen(Type& type) {
  if (is_half_precision(type.dtype)) type.dtype = DType::f32;
}

/// The body of a `fused` op as a separate program. Each operand of the `fused` op is a feed, and
/// each float result of an op in the body is an output. Half-precision types become f32.
class BodyProgram {
 public:
  BodyProgram(const ir::Op& fused, int64_t batch) {
    const auto& name = fused.attrs.get<GraphRef>("body").name;
    const ir::Graph& body = *fused.graph()->program().find(name);
    for (const auto& op : body.ops) {
      if (source_kind(*op) == SourceKind::none) ops_.push_back(op.get());
    }
    program_ = concrete_copy(ops_, batch);
    turn_arguments_into_feeds();
    for (const auto& op : program_->main().ops) convert_to_f32(*op);
    add_outputs();
  }

  ir::Program& program() { return *program_; }
  /// Maps an output index of this program to the op in the body that computes the output, and to
  /// the index of the op's result.
  std::pair<const ir::Op*, int> source_of(size_t output) const { return sources_[output]; }
  /// Maps the name of a feed to the index of its operand in the `fused` op.
  size_t operand_of(const std::string& feed) const { return operands_.at(feed); }

 private:
  /// Turns the arguments of the body into feeds. concrete_copy() puts the arguments first, in the
  /// order of their first use.
  void turn_arguments_into_feeds() {
    std::vector<const ir::Op*> arguments;
    for (const ir::Op* op : ops_) {
      for (const Value& v : op->operands) {
        if (source_kind(*v.op()) != SourceKind::argument) continue;
        if (std::ranges::find(arguments, v.op()) == arguments.end()) arguments.push_back(v.op());
      }
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      ir::Op& feed = *program_->main().ops[i];
      feed.name = "data";
      feed.symbol = fmt::format("operand{}", i);
      feed.attrs = {};
      operands_[feed.symbol] = static_cast<size_t>(arguments[i]->attrs.get<int64_t>("index"));
    }
    num_feeds_ = arguments.size();
  }

  static void convert_to_f32(ir::Op& op) {
    for (ir::Result& r : op.results) widen(r.type);
    for (const auto& [name, attr] : Attrs(op.attrs)) {
      const Type* type = std::get_if<Type>(&attr);
      if (type == nullptr) continue;
      Type wide = *type;
      widen(wide);
      op.attrs.set(name, wide);
    }
    op.attrs.erase("part_of");
    fill_default_attrs(op);
  }

  void add_outputs() {
    for (size_t k = 0; k < ops_.size(); ++k) {
      ir::Op& op = *program_->main().ops[num_feeds_ + k];
      for (size_t r = 0; r < op.results.size(); ++r) {
        if (!is_float(op.results[r].type.dtype)) continue;
        program_->main().outputs.push_back(
            {fmt::format("{}.{}", k, r), op.result(static_cast<int>(r))});
        sources_.emplace_back(ops_[k], static_cast<int>(r));
      }
    }
  }

  std::unique_ptr<ir::Program> program_;
  std::vector<const ir::Op*> ops_;
  std::map<std::string, size_t> operands_;
  std::vector<std::pair<const ir::Op*, int>> sources_;
  size_t num_feeds_ = 0;  ///< number of ops at the start of `program_` that are feeds
};

/// Returns the half-precision dtype in which the kernel stores result `result` of `op`; nullopt if
/// the kernel stores no half-precision copy.
std::optional<DType> stored_half(const ir::Op& fused, const ir::Op& op, int result) {
  const auto& name = fused.attrs.get<GraphRef>("body").name;
  for (const ir::Output& o : fused.graph()->program().find(name)->outputs) {
    if (o.value.op() == &op && o.value.index() == result && is_half_precision(o.value.dtype())) {
      return o.value.dtype();
    }
  }
  return std::nullopt;
}

struct NonfiniteOp {
  const ir::Op* op = nullptr;
  int result = 0;
  NonfiniteElement element;
};

std::optional<NonfiniteOp> first_nonfinite_op(const NonfiniteKernel& bad, int64_t batch,
                                              Device& device) {
  BodyProgram body(*bad.op, batch);
  ir::Program& program = body.program();
  Options options;
  options.fuse = options.use_libraries = false;
  run_passes(program, pipeline(options), options, device.target());
  const MemoryPlan plan = memory_plan(program, options);
  const RegionSizes regions{.state = align_up(plan.state),
                            .feeds = align_up(plan.feeds),
                            .outputs = align_up(plan.outputs),
                            .transient = align_up(plan.transient)};
  const auto place = device.allocate_memory(regions);
  const auto executable = device.compile(program, plan, options);
  const MemoryAddresses& memory = place->addresses();
  executable->bind(memory, Variables());
  for (const auto& op : program.main().ops) {
    if (source_kind(*op) != SourceKind::feed) continue;
    const Tensor given =
        bad.operands.at(body.operand_of(op->symbol)).cast(op->results[0].type.dtype);
    std::memcpy(memory.host_slots.feeds[0] + plan.values.at(op->result()).offset, given.data(),
                static_cast<size_t>(given.bytes()));
  }
  executable->run({}, nullptr);
  for (size_t i = 0; i < program.main().outputs.size(); ++i) {
    const Value v = program.main().outputs[i].value;
    const auto [op, result] = body.source_of(i);
    const int64_t offset = plan.values.at(v).offset;
    place->fetch(0, offset, v.type().bytes_at(1));
    Tensor value =
        Tensor::view(v.dtype(), extents(v.shape(), 1), memory.host_slots.outputs[0] + offset);
    if (const auto half = stored_half(*bad.op, *op, result)) value = value.cast(*half);
    if (const auto element = first_nonfinite_element(value.data(), value.dtype(), value.numel())) {
      return NonfiniteOp{op, result, *element};
    }
  }
  return std::nullopt;
}

std::string text_of(const NonfiniteOp& bad, int64_t batch) {
  const ir::Result& result = bad.op->results.at(static_cast<size_t>(bad.result));
  Type type = result.type;
  type.shape = type.shape.at(batch);
  std::string text = bad.op->loc.is_known() ? bad.op->loc.str() + ": " : "";
  text += bad.op->name;
  if (!bad.op->scope.empty()) text += " of layer '" + bad.op->scope + "'";
  if (bad.op->role != ir::Role::forward) text += fmt::format(" ({})", name_of(bad.op->role));
  return text + fmt::format(": element {} of its result {}{} is {}", bad.element.index,
                            result.name.empty() ? "" : "%" + result.name + ", ", type.str(),
                            bad.element.value);
}

}  // namespace

std::optional<NonfiniteElement> first_nonfinite_element(const void* data, DType dtype,
                                                        int64_t numel) {
  const Tensor t = Tensor::view(dtype, {numel}, static_cast<std::byte*>(const_cast<void*>(data)));
  for (int64_t i = 0; i < numel; ++i) {
    const double x = t.at(i);
    if (!std::isfinite(x)) return NonfiniteElement{i, std::isnan(x) ? std::abs(x) : x};
  }
  return std::nullopt;
}

std::string describe_nonfinite_body_op_or_empty(const NonfiniteKernel& kernel, int64_t batch,
                                                Device& device) {
  if (kernel.operands.empty()) return "";
  const auto op = first_nonfinite_op(kernel, batch, device);
  return op ? text_of(*op, batch) : "";
}

std::string describe_nonfinite_op(const NonfiniteKernel& kernel, int64_t batch, Device& device) {
  if (std::string text = describe_nonfinite_body_op_or_empty(kernel, batch, device); !text.empty())
    return text;
  // Names the first op of the kernel's body, because it is unknown which op of the kernel produced
  // the first non-finite value. The body of a library kernel starts with its matmul or convolution.
  const auto& name = kernel.op->attrs.get<GraphRef>("body").name;
  for (const auto& op : kernel.op->graph()->program().find(name)->ops) {
    if (source_kind(*op) == SourceKind::none) return text_of({op.get(), 0, kernel.element}, batch);
  }
  throw InternalError("a kernel without ops");
}

}  // namespace fluid
