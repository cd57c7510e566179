#include "ops/operators.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool is_constant(const ir::Op& op) {
  return op.operands.empty() && std::holds_alternative<Pure>(*def_of(op).effects) &&
         source_kind(op) == SourceKind::none;
}

bool takes_part(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  return source_kind(op) == SourceKind::none && !std::holds_alternative<Store>(lower) &&
         !std::holds_alternative<Directive>(lower) && !is_constant(op);
}

/// Chooses a precision for every op and casts what it reads, once a value and dtype.
class Caster {
 public:
  Caster(const ir::Graph& graph, DType half) : half_(half) {
    for (const auto& op : graph.ops) {
      for (const Value v : op->operands) recorded_[v] = v.dtype();
    }
    for (const ir::Output& o : graph.outputs) recorded_[o.value] = o.value.dtype();
  }

  void visit(ir::Op& op) {
    if (!takes_part(op)) {
      if (source_kind(op) == SourceKind::parameter || is_constant(op)) adapts_.insert(&op);
      for (Value& v : op.operands) v = as_recorded(v);  // of a store or a directive
      return;
    }
    const std::optional<DType> wanted = precision(op);
    if (!wanted) return;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      op.operands[i] = converted(op.operands[i], stays_f32(op, i) ? DType::f32 : *wanted);
    }
    const std::vector<Type> types = infer_types(op);
    for (size_t i = 0; i < types.size(); ++i) op.results.at(i).type = types[i];
  }

  /// What users see keeps the dtype that was recorded.
  Value as_recorded(Value v) { return converted(v, recorded_.at(v)); }

  bool changed() const { return !casts_.empty(); }

 private:
  bool stays_f32(const ir::Op& op, size_t operand) const {
    const std::vector<int>& f32 = def_of(op).amp.f32_operands;
    return std::ranges::find(f32, static_cast<int>(operand)) != f32.end();
  }

  /// What the op computes in; nothing when it reads no f32 and no half, or adapts to its reader.
  std::optional<DType> precision(const ir::Op& op) {
    bool reads_floats = false, decided = false, all_half = true;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Value v = op.operands[i];
      if (v.dtype() != DType::f32 && v.dtype() != half_) continue;
      reads_floats = true;
      if (stays_f32(op, i) || adapts_.contains(v.op())) continue;
      decided = true;
      all_half &= v.dtype() == half_;
    }
    if (!reads_floats) return {};
    switch (def_of(op).amp.klass) {
      case Amp::kHalf:
        return half_;
      case Amp::kF32:
        return DType::f32;
      case Amp::kFollow:
        if (decided) return all_half ? half_ : DType::f32;
        adapts_.insert(&op);  // of parameters and constants alone: as its reader wants it
        return {};
    }
    return {};
  }

  Value converted(Value v, DType to) {
    const bool converts = v.dtype() != to && (v.dtype() == DType::f32 || v.dtype() == half_);
    if (!converts) return v;
    Value& known = casts_[{v, to}];
    if (!known) known = cast(v, to, v.op()->loc);
    return known;
  }

  DType half_;
  std::map<Value, DType> recorded_;  ///< before anything was cast
  std::set<const ir::Op*> adapts_;
  std::map<std::pair<Value, DType>, Value> casts_;
};

bool run(ir::Program& program, const Options& options, const Target&) {
  if (!options.amp) return false;
  ir::Graph& graph = program.main();
  Caster caster(graph, options.amp->dtype);
  rewrite_ops(graph, [&](ir::Op& op) {
    caster.visit(op);
    return Values();
  });
  for (ir::Output& o : graph.outputs) o.value = caster.as_recorded(o.value);
  return caster.changed();
}

}  // namespace

Pass amp_cast_pass() {
  return {.name = "amp_cast",
          .doc =
              "Automatic mixed precision: casts so that compute-bound ops run in half precision "
              "and range-sensitive ones in f32; the rest follow what they read.",
          .needs = {"typed"},
          .gives = {},
          .run = run};
}

}  // namespace fluid
