#include "tests/support/interpreter.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/loops.h"
#include "ops/scan.h"
#include "tests/support/kernel_buffers.h"
#include "tests/support/kir_interpreter.h"
#include "tests/support/op_group.h"
#include "tests/support/scalar_program.h"

namespace fluid::testing {
namespace {

/// A tensor as numbers, so that elements are reached without conversions.
struct Array {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<Number> data;
};

int64_t integer_at(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DType::i64:
      return t.as<int64_t>()[static_cast<size_t>(i)];
    default:
      return static_cast<int64_t>(t.at(i));
  }
}

Array array_of(const Tensor& t) {
  Array a{t.dtype(), t.shape(), {}};
  for (int64_t i = 0; i < t.numel(); ++i) {
    a.data.push_back(is_float(t.dtype()) ? Number{t.at(i), 0} : Number{0, integer_at(t, i)});
  }
  return a;
}

Tensor tensor_of(const Array& a) {
  const bool floats = is_float(a.dtype);
  Tensor wide(floats ? DType::f64 : DType::i64, a.shape);
  for (size_t i = 0; i < a.data.size(); ++i) {
    if (floats) {
      wide.as<double>()[i] = a.data[i].f;
    } else {
      wide.as<int64_t>()[i] = a.data[i].i;
    }
  }
  return wide.dtype() == a.dtype ? wide : wide.cast(a.dtype);
}

/// Element i of `sequence` along dimension 0.
Tensor element(const Tensor& sequence, int64_t i) {
  const std::vector<int64_t>& shape = sequence.shape();
  Tensor t(sequence.dtype(), {shape.begin() + 1, shape.end()});
  if (t.bytes() == 0) return t;
  const auto* data = static_cast<const std::byte*>(sequence.data());
  std::memcpy(t.data(), data + i * t.bytes(), static_cast<size_t>(t.bytes()));
  return t;
}

void set_element(Tensor& sequence, int64_t i, const Tensor& value) {
  if (value.bytes() == 0) return;
  auto* data = static_cast<std::byte*>(sequence.data());
  std::memcpy(data + i * value.bytes(), value.data(), static_cast<size_t>(value.bytes()));
}

/// Calls `visit` for every index in row-major order.
void for_each_index(const std::vector<int64_t>& extents, std::vector<int64_t>& vars, size_t first,
                    const std::function<void()>& visit) {
  const size_t rank = extents.size();
  for (const int64_t n : extents) {
    if (n == 0) return;
  }
  for (size_t d = 0; d < rank; ++d) vars[first + d] = 0;
  while (true) {
    visit();
    size_t d = rank;
    while (d > 0 && ++vars[first + d - 1] == extents[d - 1]) vars[first + --d] = 0;
    if (d == 0) return;
  }
}

class Evaluator {
 public:
  Evaluator(const NamedTensors& sources, const InterpretOptions& options, Interpreted& result)
      : sources_(sources), options_(options), result_(result) {}

  void run(const ir::Op& op) {
    const Lower& lower = *definition(op).lower;
    if (std::holds_alternative<Source>(lower)) {
      set(op, 0, array_of(source(op)));
    } else if (std::holds_alternative<Store>(lower)) {
      result_.stores[op.symbol] = result_.values.at(op.operands.at(0));
    } else if (std::holds_alternative<Alias>(lower)) {
      Array a = arrays_.at(op.operands.at(0));
      a.shape = extents_of(op.results[0].type.shape, options_.batch);
      set(op, 0, std::move(a));
    } else if (std::holds_alternative<FusedOp>(lower)) {
      run_fused(op);
    } else if (std::holds_alternative<Scan>(lower)) {
      run_scan(op);
    } else if (std::holds_alternative<Loops>(lower)) {
      run_loops(op);
    } else if (!std::holds_alternative<Directive>(lower)) {
      run_lowered(op, lower_op(op, definition(op)));
    }
  }

 private:
  const OpDef& definition(const ir::Op& op) const {
    return options_.definition ? options_.definition(op) : def_of(op);
  }

  Tensor source(const ir::Op& op) const {
    const std::string name = op.attrs.has("index") && op.symbol.empty()
                                 ? std::to_string(op.attrs.get<int64_t>("index"))
                                 : op.symbol;
    const auto at = sources_.find(name);
    if (at == sources_.end()) throw UserError("no value is given for " + op.name + " " + name);
    const Type& type = op.results[0].type;
    check(at->second.shape() == extents_of(type.shape, options_.batch),
          name + " is given as " + at->second.str() + " for " + type.str());
    return at->second.dtype() == type.dtype ? at->second : at->second.cast(type.dtype);
  }

  void set(const ir::Op& op, int result, Array array) {
    const Value value(const_cast<ir::Op*>(&op), result);
    const Tensor rounded = tensor_of(array);
    arrays_[value] = array_of(rounded);
    result_.values[value] = rounded;
  }

  NamedTensors arguments(const ir::Op& op) const {
    NamedTensors args;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      args[std::to_string(i)] = result_.values.at(op.operands[i]);
    }
    return args;
  }

  /// The values of the body's outputs.
  std::vector<Tensor> run_body(ir::Graph& body, const NamedTensors& args) {
    const Interpreted inner = interpret(body, args, options_);
    result_.index_error = result_.index_error || inner.index_error;
    result_.operations += inner.operations;
    std::vector<Tensor> values;
    for (const ir::Output& o : body.outputs) values.push_back(inner.values.at(o.value));
    return values;
  }

  void run_fused(const ir::Op& op) {
    ir::Graph* body = op.graph()->program().find(op.attrs.get<GraphRef>("body").name);
    check(body != nullptr, "a fused op without a body");
    const std::vector<Tensor> values = run_body(*body, arguments(op));
    for (size_t i = 0; i < values.size(); ++i) set(op, static_cast<int>(i), array_of(values[i]));
  }

  void run_scan(const ir::Op& op) {
    const ScanParts parts = scan_parts(op);
    const NamedTensors operands = arguments(op);
    NamedTensors args = operands;
    std::vector<Tensor> results;
    for (const ir::Result& r : op.results) {
      results.emplace_back(r.type.dtype, extents_of(r.type.shape, options_.batch));
    }
    for (int64_t step = 0; step < parts.steps; ++step) {
      const int64_t at = parts.reverse ? parts.steps - 1 - step : step;
      for (size_t i = parts.carries; i < parts.captures_begin(); ++i) {
        args[std::to_string(i)] = element(operands.at(std::to_string(i)), at);
      }
      const std::vector<Tensor> values = run_body(*parts.body, args);
      for (size_t i = 0; i < values.size(); ++i) {
        if (i < parts.carries) {
          args[std::to_string(i)] = results[i] = values[i];
        } else {
          set_element(results[i], at, values[i]);
        }
      }
    }
    for (size_t i = 0; i < results.size(); ++i) set(op, static_cast<int>(i), array_of(results[i]));
  }

  /// Runs the kernel that the op writes, one scalar at a time.
  void run_loops(const ir::Op& op) {
    ir::Program group("group");
    const ir::Op& copy = *make_group(op, group.main());
    const kir::Kernel kernel = loops_kernel(copy, definition(op), "k", KernelDevice::cpu);
    std::vector<Tensor> memory;
    size_t in = 0, out = 0;
    for (const kir::Buffer& b : kernel.buffers) {
      if (b.role == kir::Buffer::Role::in) {
        memory.push_back(result_.values.at(op.operands.at(in++)));
      } else if (b.role == kir::Buffer::Role::out) {
        memory.emplace_back(b.dtype, extents_of(op.results.at(out++).type.shape, options_.batch));
      } else {
        memory.push_back(memory_of(kernel, b, options_.batch));
      }
    }
    std::vector<void*> pointers;
    if (const auto& pair = options_.in_place) {
      Tensor& operand = memory[static_cast<size_t>(pair->in)];
      memory[op.operands.size() + static_cast<size_t>(pair->out)] = operand = operand.copy();
    }
    for (Tensor& t : memory) pointers.push_back(t.data());
    copy_to_overwriting_results(*definition(op).in_place, std::span(memory).first(in), pointers);
    result_.operations += interpret(kernel, pointers, options_.batch);
    for (size_t r = 0; r < out; ++r) {
      set(op, static_cast<int>(r), array_of(memory[op.operands.size() + r]));
    }
    if (kernel.buffers.back().role != kir::Buffer::Role::error) return;
    for (const int64_t word : memory.back().as<int64_t>()) {
      result_.index_error = result_.index_error || word != 0;
    }
  }

  void run_lowered(const ir::Op& op, const Lowered& lowered) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<const Array*> operands;
    for (const Value& v : op.operands) {
      operands.push_back(&arrays_.at(v));
      shapes.push_back(operands.back()->shape);
    }
    const ReadElement read = [&](size_t operand, const std::vector<int64_t>& index) {
      const Array& a = *operands[operand];
      int64_t offset = 0;
      for (size_t d = 0; d < index.size(); ++d) offset = offset * a.shape[d] + index[d];
      return a.data[static_cast<size_t>(offset)];
    };
    const std::vector<int64_t> out = extents_of(lowered.out, options_.batch);
    std::vector<Array> results;
    for (const ir::Result& r : op.results) results.push_back({r.type.dtype, out, {}});
    std::vector<ScalarProgram> bodies;
    for (const Expr& e : lowered.bodies) bodies.emplace_back(e, shapes, options_.round_operations);
    std::vector<int64_t> vars(lowered.out.size() + lowered.reduce.size());
    for_each_index(out, vars, 0, [&] {
      if (lowered.combine) {
        reduce(lowered, bodies[0], vars, read, results);
        return;
      }
      for (size_t i = 0; i < bodies.size(); ++i) {
        results[i].data.push_back(bodies[i].run(vars, options_.batch, read, result_.index_error));
      }
    });
    for (size_t i = 0; i < results.size(); ++i) set(op, static_cast<int>(i), results[i]);
  }

  void reduce(const Lowered& lowered, ScalarProgram& body, std::vector<int64_t>& vars,
              const ReadElement& read, std::vector<Array>& results) {
    const bool floats = is_float(lowered.bodies[0].dtype());
    const Combine combine = *lowered.combine;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    using Limits = std::numeric_limits<int64_t>;
    Number total;
    if (combine == Combine::prod) total = {1, 1};
    if (combine == Combine::min) total = {kInfinity, Limits::max()};
    if (combine == Combine::max || combine == Combine::argmax) total = {-kInfinity, Limits::min()};
    int64_t position = 0, best = 0;
    for_each_index(extents_of(lowered.reduce, options_.batch), vars, lowered.out.size(), [&] {
      const Number x = body.run(vars, options_.batch, read, result_.index_error);
      const bool nan = floats && std::isnan(x.f) && !std::isnan(total.f);
      const bool less = floats ? x.f < total.f : x.i < total.i;
      const bool more = floats ? x.f > total.f : x.i > total.i;
      if (combine == Combine::sum) {
        total.f += x.f;
        total.i = static_cast<int64_t>(static_cast<uint64_t>(total.i) + static_cast<uint64_t>(x.i));
      } else if (combine == Combine::prod) {
        total.f *= x.f;
        total.i = static_cast<int64_t>(static_cast<uint64_t>(total.i) * static_cast<uint64_t>(x.i));
      } else if (nan || (combine == Combine::min ? less : more)) {
        total = x;
        best = position;
      }
      ++position;
    });
    results[0].data.push_back(total);
    if (combine == Combine::argmax) results[1].data.push_back({0, best});
  }

  const NamedTensors& sources_;
  const InterpretOptions& options_;
  Interpreted& result_;
  std::map<Value, Array> arrays_;
};

}  // namespace

void expand_all(ir::Graph& graph, const std::function<const OpDef&(const ir::Op&)>& definition) {
  for (size_t at = 0; at < graph.ops.size();) {
    ir::Op& op = *graph.ops[at];
    const Expand* expand = std::get_if<Expand>(&*definition(op).lower);
    if (expand == nullptr) {
      ++at;
      continue;
    }
    const size_t end = graph.ops.size();
    const Values replacements = expand->ops(ExpandCtx(op));
    for (size_t i = 0; i < replacements.size(); ++i) {
      graph.replace_all_uses(op.result(static_cast<int>(i)), replacements[i]);
    }
    graph.move_tail(end, at);
    graph.erase_if([&](const ir::Op& o) { return &o == &op; });
  }
}

Interpreted interpret(ir::Graph& graph, const NamedTensors& sources,
                      const InterpretOptions& options) {
  expand_all(graph, options.definition ? options.definition : def_of);
  Interpreted result;
  Evaluator evaluator(sources, options, result);
  for (const auto& op : graph.ops) evaluator.run(*op);
  for (const ir::Output& o : graph.outputs) result.outputs[o.name] = result.values.at(o.value);
  return result;
}

}  // namespace fluid::testing
