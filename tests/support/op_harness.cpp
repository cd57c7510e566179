#include "tests/support/op_harness.h"

#include <array>
#include <cmath>
#include <numeric>

#include "ir/parse.h"
#include "ir/print.h"
#include "ops/operators.h"
#include "tests/support/full_run.h"
#include "tests/support/interpreter.h"

namespace fluid::testing {
namespace {

std::string label(const OpTest& test, size_t sample) {
  std::string s = test.op + " sample " + std::to_string(sample) + " (";
  for (const Tensor& t : test.samples[sample].inputs) s += " " + t.str();
  return s + " )";
}

Type type_of(const Tensor& t, int batch_dim) {
  Type type{t.dtype(), {}, {}};
  for (const int64_t n : t.shape()) type.shape.emplace_back(n);
  if (batch_dim >= 0) type.shape[static_cast<size_t>(batch_dim)] = kBatch;
  return type;
}

int batch_dim(const Sample& s, size_t input) {
  return input < s.batch_dims.size() ? s.batch_dims[input] : -1;
}

Attrs with_dtype(Attrs attrs, DType dtype) {
  for (const auto& [name, attr] : Attrs(attrs)) {
    const Type* type = std::get_if<Type>(&attr);
    if (type != nullptr && type->dtype == f64) {
      attrs.set(name, Type{dtype, type->shape, type->layout});
    }
  }
  return attrs;
}

/// The first difference beyond `tolerance` * (1 + |wanted|); "" when there is none.
std::string difference(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (got.shape() != wanted.shape()) return "is " + got.str() + ", not " + wanted.str();
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = got.at(i), w = wanted.at(i);
    const bool equal = g == w || (std::isnan(g) && std::isnan(w)) ||
                       std::abs(g - w) <= tolerance * (1 + std::abs(w));
    if (!equal) {
      return "element " + std::to_string(i) + " is " + std::to_string(g) + ", not " +
             std::to_string(w);
    }
  }
  return "";
}

Type concrete(const Type& t, int64_t batch) { return {t.dtype, t.shape.at(batch), t.layout}; }

bool lowers(const OpDef& def) {
  return std::holds_alternative<Map>(*def.lower) || std::holds_alternative<Reduce>(*def.lower);
}

/// Arithmetic of one evaluation of a body; a transcendental function counts 10.
double flops_of(const Expr& body) {
  double flops = 0;
  for_each_node(body, [&](const Expr& e) {
    if (e.op() == ScalarOp::philox) flops += 20;
    if (!is_float(e.dtype()) || e.op() < ScalarOp::add || e.op() > ScalarOp::cos) return;
    const bool slow = e.op() == ScalarOp::pow || e.op() == ScalarOp::mod ||
                      (e.op() >= ScalarOp::exp && e.op() <= ScalarOp::cos);
    flops += slow ? 10 : 1;
  });
  return flops;
}

double flops_of(const ir::Op& op, int64_t batch) {
  const Lowered lowered = lower_op(op);
  double points = 1, reduced = 1, flops = 0;
  for (const Dim& d : lowered.out) points *= static_cast<double>(d.at(batch));
  for (const Dim& d : lowered.reduce) reduced *= static_cast<double>(d.at(batch));
  for (const Expr& e : lowered.bodies) flops += flops_of(e);
  if (lowered.combine) flops += 1;
  return points * reduced * flops;
}

/// Whether every read of `operand` is at the result's own element.
bool reads_own_element(const Lowered& lowered, size_t operand) {
  bool own = true;
  for (const Expr& body : lowered.bodies) {
    for_each_node(body, [&](const Expr& e) {
      if (e.op() != ScalarOp::read || e.node().ivalue != static_cast<int64_t>(operand)) return;
      for (size_t d = 0; d < e.args().size(); ++d) {
        const Expr& index = e.args()[d];
        const bool same_place =
            structurally_equal(index, Expr::var(static_cast<int64_t>(d))) ||
            (d < lowered.out.size() && lowered.out[d].is(1) && is_constant(index, 0));
        own = own && same_place;
      }
    });
  }
  return own;
}

double weighted_sum(const Interpreted& run, const Values& results, const NamedTensors& weights) {
  double total = 0;
  for (size_t r = 0; r < results.size(); ++r) {
    const auto weight = weights.find("dy" + std::to_string(r));
    if (weight == weights.end()) continue;
    const Tensor& y = run.values.at(results[r]);
    for (int64_t i = 0; i < y.numel(); ++i) total += y.at(i) * weight->second.at(i);
  }
  return total;
}

/// The gradient of the weighted sum of the results at input `i`, by central differences.
Tensor finite_difference(Built& b, const std::string& input, const NamedTensors& weights,
                         const Values& results) {
  Tensor x = b.sources.at(input).copy();
  Tensor slope(f64, x.shape());
  NamedTensors sources = b.sources;
  sources[input] = x;
  for (int64_t i = 0; i < x.numel(); ++i) {
    double& element = x.as<double>()[static_cast<size_t>(i)];
    const double at = element, h = 1e-5 * std::max(1.0, std::abs(at));
    element = at + h;
    const double above =
        weighted_sum(interpret(b.program->main(), sources, {b.batch, {}}), results, weights);
    element = at - h;
    const double below =
        weighted_sum(interpret(b.program->main(), sources, {b.batch, {}}), results, weights);
    element = at;
    slope.as<double>()[static_cast<size_t>(i)] = (above - below) / (2 * h);
  }
  return slope;
}

Faults gradient_faults(const OpTest& test, size_t s, const GradFn& grad) {
  Faults faults;
  const std::string who = label(test, s);
  Built forward = build(test, test.samples[s]);
  Built b = build(test, test.samples[s]);
  Values dout(b.op->results.size());
  NamedTensors weights;
  for (size_t r = 0; r < dout.size(); ++r) {
    const Type& type = b.op->results[r].type;
    if (!is_float(type.dtype)) continue;
    const std::string name = "dy" + std::to_string(r);
    weights[name] = random_tensor(interpret(forward.program->main(), forward.sources, {b.batch, {}})
                                      .outputs.at(std::to_string(r))
                                      .shape(),
                                  0.5, 1.5, 9);
    dout[r] = record_source(b.program->main(), "data", name, type, {}, {});
  }
  if (weights.empty()) return faults;
  const Values grads = grad(GradCtx(*b.op, dout));
  if (grads.size() != b.op->operands.size()) return {who + ": not one gradient an operand"};
  b.program->main().outputs.clear();
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i]) continue;
    const Type& wanted = b.op->operands[i].type();
    if (grads[i].type() != wanted) {
      faults.push_back(who + ": gradient " + std::to_string(i) + " is " + grads[i].type().str() +
                       " for " + wanted.str());
    }
    b.program->main().outputs.push_back({"d" + std::to_string(i), grads[i]});
  }
  NamedTensors sources = b.sources;
  sources.insert(weights.begin(), weights.end());
  const Interpreted run = interpret(b.program->main(), sources, {b.batch, {}});
  Values results;
  for (const ir::Output& o : forward.program->main().outputs) results.push_back(o.value);
  for (size_t i = 0; i < grads.size(); ++i) {
    const std::string input = std::to_string(i);
    if (forward.sources.at(input).dtype() != f64) continue;
    const Tensor wanted = finite_difference(forward, input, weights, results);
    const Tensor got = grads[i] ? run.outputs.at("d" + input) : Tensor(f64, wanted.shape());
    const std::string found = difference(got, wanted, 1e-6);
    if (!found.empty()) faults.push_back(who + ": gradient " + input + " " + found);
  }
  return faults;
}

/// Runs the kernel that the op writes with each declared result in its operand's place.
Faults in_place_faults_of_loops(const OpTest& test, const OpDef& def) {
  Faults faults;
  for (size_t s = 0; s < test.samples.size(); ++s) {
    for (const InPlace& pair : *def.in_place) {
      Built b = build(test, test.samples[s]);
      if (b.op->results[static_cast<size_t>(pair.out)].type !=
          b.op->operands[static_cast<size_t>(pair.in)].type()) {
        continue;
      }
      InterpretOptions options{b.batch, {}};
      const Interpreted apart = interpret(b.program->main(), b.sources, options);
      options.in_place = pair;
      const Interpreted shared = interpret(b.program->main(), b.sources, options);
      for (const auto& [name, tensor] : apart.outputs) {
        const std::string found = difference(shared.outputs.at(name), tensor, 0);
        if (!found.empty()) faults.push_back(label(test, s) + " in place: result " + found);
      }
    }
  }
  return faults;
}

}  // namespace

Built build(const OpTest& test, const Sample& sample, DType dtype) {
  Built b;
  b.program = std::make_unique<ir::Program>("sample");
  ir::Graph& graph = b.program->main();
  Values operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const Tensor& given = sample.inputs[i];
    const Tensor input = given.dtype() == f64 ? given.cast(dtype) : given;
    const int at = batch_dim(sample, i);
    if (at >= 0) b.batch = input.shape()[static_cast<size_t>(at)];
    const std::string name = std::to_string(i);
    operands.push_back(record_source(graph, "data", name, type_of(input, at), {}, {}));
    b.sources[name] = input;
  }
  const Values results = record(graph, test.op, operands, with_dtype(sample.attrs, dtype), {});
  for (size_t r = 0; r < results.size(); ++r) {
    graph.outputs.push_back({std::to_string(r), results[r]});
  }
  b.op = graph.ops.back().get();
  return b;
}

Faults check_forward(const OpTest& test, const OpDef& def) {
  Faults faults;
  for (size_t s = 0; s < test.samples.size(); ++s) {
    Built b = build(test, test.samples[s]);
    const std::vector<Tensor> wanted = test.reference(test.samples[s]);
    std::vector<Type> in;
    for (const Value& v : b.op->operands) in.push_back(v.type());
    const std::vector<Type> types = (*def.infer)(InferCtx(test.op, in, b.op->attrs, {}));
    if (types.size() != wanted.size()) return {label(test, s) + ": another number of results"};
    for (size_t r = 0; r < types.size(); ++r) b.op->results[r].type = types[r];
    InterpretOptions options{b.batch, {}};
    options.definition = [&](const ir::Op& op) -> const OpDef& {
      return op.name == test.op ? def : def_of(op);
    };
    for (size_t r = 0; r < types.size(); ++r) {
      std::vector<int64_t> shape;
      for (const Dim& d : types[r].shape) shape.push_back(d.at(b.batch));
      if (shape != wanted[r].shape()) {
        faults.push_back(label(test, s) + ": infers " + types[r].str() + " for " + wanted[r].str());
      }
    }
    if (!faults.empty()) return faults;
    const Interpreted run = interpret(b.program->main(), b.sources, options);
    for (size_t r = 0; r < wanted.size(); ++r) {
      const std::string found = difference(run.outputs.at(std::to_string(r)), wanted[r], 1e-11);
      if (!found.empty()) faults.push_back(label(test, s) + ": result " + found);
    }
  }
  return faults;
}

Faults check_gradient(const OpTest& test, const OpDef& def) {
  Faults faults;
  const GradFn* grad = std::get_if<GradFn>(&*def.grad);
  if (grad == nullptr || !test.gradient) return faults;
  for (size_t s = 0; s < test.samples.size(); ++s) {
    for (const std::string& fault : gradient_faults(test, s, *grad)) faults.push_back(fault);
  }
  return faults;
}

Faults check_cost(const OpTest& test, const OpDef& def) {
  Faults faults;
  for (size_t s = 0; s < test.samples.size(); ++s) {
    Built b = build(test, test.samples[s]);
    std::vector<Type> in, out;
    for (const Value& v : b.op->operands) in.push_back(concrete(v.type(), b.batch));
    for (const ir::Result& r : b.op->results) out.push_back(concrete(r.type, b.batch));
    const Cost cost = (*def.cost)(CostCtx{in, out, b.op->attrs});
    double elements = 0, bytes = 0;
    for (const Type& t : out) elements += static_cast<double>(t.shape.numel().size);
    for (const Type& t : in) bytes += static_cast<double>(t.bytes_at(1));
    for (const Type& t : out) bytes += static_cast<double>(t.bytes_at(1));
    expand_all(b.program->main());
    double derived = interpret(b.program->main(), b.sources, {b.batch, {}}).operations;
    for (const auto& op : b.program->main().ops) {
      if (lowers(def_of(*op))) derived += flops_of(*op, b.batch);
    }
    if (cost.bytes != -1 && (cost.bytes < 0 || cost.bytes > 10 * bytes)) {
      faults.push_back(label(test, s) + ": cost says " + std::to_string(cost.bytes) +
                       " bytes, operands and results have " + std::to_string(bytes));
    }
    if (cost.flops > 10 * (derived + elements) || derived > 10 * (cost.flops + elements)) {
      faults.push_back(label(test, s) + ": cost says " + std::to_string(cost.flops) +
                       " flops, the lowered form has " + std::to_string(derived));
    }
  }
  return faults;
}

Faults check_in_place(const OpTest& test, const OpDef& def) {
  Faults faults;
  const auto declared = [&](size_t out, size_t in) {
    for (const InPlace& p : *def.in_place) {
      if (p.out == static_cast<int>(out) && p.in == static_cast<int>(in)) return true;
    }
    return false;
  };
  if (std::holds_alternative<Alias>(*def.lower)) {
    return declared(0, 0) ? faults : Faults{test.op + ": an alias is in place"};
  }
  if (std::holds_alternative<Loops>(*def.lower)) return in_place_faults_of_loops(test, def);
  if (!lowers(def)) return faults;
  const Updates* updates = std::get_if<Updates>(&*def.effects);
  for (size_t r = 0; updates != nullptr && r < updates->results.size(); ++r) {
    const auto [result, operand] = updates->results[r];
    if (declared(static_cast<size_t>(result), static_cast<size_t>(operand))) continue;
    faults.push_back(test.op + ": new value " + std::to_string(result) + " is not in place");
  }
  const bool map = std::holds_alternative<Map>(*def.lower);
  std::map<std::pair<size_t, size_t>, bool> always_safe;  // over samples where the types agree
  for (const Sample& sample : test.samples) {
    const Built b = build(test, sample);
    const Lowered lowered = lower_op(*b.op);
    const size_t operands = std::min(b.op->operands.size(), def.inputs->size());
    for (size_t out = 0; out < b.op->results.size(); ++out) {
      for (size_t in = 0; in < operands; ++in) {
        if (b.op->results[out].type != b.op->operands[in].type()) continue;
        const bool safe = map && reads_own_element(lowered, in);
        always_safe[{out, in}] = safe && always_safe.try_emplace({out, in}, true).first->second;
      }
    }
  }
  for (const auto& [pair, safe] : always_safe) {
    const auto [out, in] = pair;
    const std::string who =
        test.op + ": result " + std::to_string(out) + " in place of operand " + std::to_string(in);
    if (declared(out, in) && !safe) faults.push_back(who + " is read after it is overwritten");
    // For an op with several results, one in-place operand is enough: the op declares which one.
    const bool alone = def.outputs->size() == 1 && updates == nullptr && !test.own_memory;
    if (test.own_memory && declared(out, in)) faults.push_back(who + " is not memory of its own");
    if (safe && alone && !declared(out, in)) faults.push_back(who + " would be safe");
  }
  return faults;
}

bool is_tested(const OpTest& test, size_t sample, DType dtype, Processor processor) {
  if (is_full_run() || (processor == Processor::cpu && dtype == f32)) return true;
  if (processor != Processor::gpu && sample % 3 == 1) return false;
  constexpr std::array kFloats = {f64, f16, bf16};
  constexpr std::array kOthers = {i64, i32, u8, i8, boolean};
  const size_t turn = sample + std::accumulate(test.op.begin(), test.op.end(), size_t{0});
  if (!is_float(dtype)) return kOthers[turn % kOthers.size()] == dtype;
  if (processor == Processor::cpu) return kFloats[turn % kFloats.size()] == dtype;
  return (turn % 2 == 0 ? f32 : kFloats[turn / 2 % kFloats.size()]) == dtype;
}

Faults check_kernels(const OpTest& test, Processor processor) {
  struct Precision {
    DType dtype;
    double tolerance;
  };
  // A few units in the last place of each dtype.
  constexpr std::array<Precision, 4> kPrecisions = {
      {{f64, 1e-13}, {f32, 2e-6}, {f16, 4e-3}, {bf16, 3e-2}}};
  Faults faults;
  for (const Precision& p : kPrecisions) {
    for (size_t s = 0; s < test.samples.size(); ++s) {
      if (!is_tested(test, s, p.dtype, processor)) continue;
      Built b = build(test, test.samples[s], p.dtype);
      Sample rounded = test.samples[s];
      for (Tensor& t : rounded.inputs) {
        if (t.dtype() == f64) t = t.cast(p.dtype).cast(f64);
      }
      Built exact = build(test, rounded);
      const Interpreted wanted = interpret(exact.program->main(), exact.sources, {b.batch, {}});
      expand_all(b.program->main());
      const NamedTensors got = run_kernels(b.program->main(), b.sources, b.batch, processor);
      for (const auto& [name, tensor] : wanted.outputs) {
        const std::string found = difference(got.at(name), tensor, p.tolerance * test.slack);
        if (found.empty()) continue;
        faults.push_back(label(test, s) + " in " + std::string(name_of(p.dtype)) + ": result " +
                         name + " " + found);
      }
    }
  }
  return faults;
}

namespace {

/// The sample with whole numbers for floats, of a size that `dtype` holds.
Sample whole_numbers(Sample sample, DType dtype) {
  for (Tensor& t : sample.inputs) {
    if (t.dtype() != f64) continue;
    t = t.copy();
    for (double& x : t.as<double>()) {
      const double whole = std::floor(5 * x);
      x = dtype == boolean ? whole > 0 : dtype == u8 ? std::abs(whole) : whole;
    }
  }
  return sample;
}

}  // namespace

std::optional<Built> build_of_integers(const OpTest& test, const Sample& sample, DType dtype) {
  try {
    return build(test, whole_numbers(sample, dtype), dtype);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

Faults check_integer_kernels(const OpTest& test, Processor processor) {
  Faults faults;
  for (const DType dtype : {i64, i32, u8, i8, boolean}) {
    for (size_t s = 0; s < test.samples.size(); ++s) {
      if (!is_tested(test, s, dtype, processor)) continue;
      std::optional<Built> b = build_of_integers(test, test.samples[s], dtype);
      if (!b) continue;
      expand_all(b->program->main());
      const Interpreted wanted = interpret(b->program->main(), b->sources, {b->batch, {}});
      const NamedTensors got = run_kernels(b->program->main(), b->sources, b->batch, processor);
      for (const auto& [name, tensor] : wanted.outputs) {
        const std::string found = difference(got.at(name), tensor, 1e-13);
        if (found.empty()) continue;
        faults.push_back(label(test, s) + " in " + std::string(name_of(dtype)) + ": result " +
                         name + " " + found);
      }
    }
  }
  return faults;
}

Faults check_text(const OpTest& test) {
  Faults faults;
  for (const Sample& sample : test.samples) {
    const Built b = build(test, sample);
    const std::string text = ir::print(*b.program);
    const auto parsed = ir::parse(text, "sample.fir");
    if (ir::print(*parsed) != text) faults.push_back(test.op + ": does not print as it parses");
    for (const auto& op : parsed->main().ops) verify_op(*op);
  }
  return faults;
}

Faults check_bad_uses(const OpTest& test) {
  Faults faults;
  for (const BadUse& use : test.bad) {
    ir::Program program("bad");
    Values operands;
    for (const Type& type : use.inputs) {
      operands.push_back(
          record_source(program.main(), "data", std::to_string(operands.size()), type, {}, {}));
    }
    std::string message = "no error";
    try {
      record(program.main(), test.op, operands, use.attrs, {});
    } catch (const UserError& e) {
      message = e.what();
    }
    if (message != use.message)
      faults.push_back("says '" + message + "', not '" + use.message + "'");
  }
  return faults;
}

}  // namespace fluid::testing
