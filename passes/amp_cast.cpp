#include "passes/amp_cast.h"

#include <algorithm>
#include <set>

#include "ops/no_amp.h"
#include "ops/operators.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// The precision chosen for an op, and the reason: a NoAmp scope, a list in AmpOptions, or the op's
/// autocast class.
struct AmpDecision {
  DType dtype = DType::f32;
  std::string reason;
};

bool is_in_layer(const std::string& scope, const std::string& layer) {
  return scope == layer || scope.starts_with(layer + ".");
}

/// Precedence of `name`, an entry of in_f32 or in_half, for `op`; the entry with the highest
/// precedence wins. Returns the length of `name` if it is a layer that contains the op, 0 if it is
/// the name of the op, else nullopt.
std::optional<size_t> match_precedence(const std::string& name, const ir::Op& op) {
  if (is_in_layer(op.scope, name)) return name.size();
  if (op.name == name) return 0;
  return std::nullopt;
}

/// Names of the graph's layers at every level of nesting: "encoder" as well as "encoder.fc0".
std::set<std::string> layers_of(const ir::Graph& graph) {
  std::set<std::string> layers;
  for (const auto& op : graph.ops) {
    for (size_t end = op->scope.find('.'); end != std::string::npos;
         end = op->scope.find('.', end + 1)) {
      layers.insert(op->scope.substr(0, end));
    }
    if (!op->scope.empty()) layers.insert(op->scope);
  }
  return layers;
}

std::optional<AmpDecision> amp_override(const ir::Op& op, const AmpOptions& options) {
  if (op.attrs.get_or(kNoAmp, false)) return AmpDecision{DType::f32, "scope: NoAmp"};
  // in_f32 and in_half do not apply to ops that update variables, which are not compute-bound.
  if (std::holds_alternative<Updates>(*def_of(op).effects)) return std::nullopt;
  std::optional<AmpDecision> match;
  size_t best = 0;
  const auto look_in = [&](const std::vector<std::string>& names, DType dtype) {
    for (const std::string& name : names) {
      const std::optional<size_t> found = match_precedence(name, op);
      if (!found || (match && *found <= best)) continue;
      best = *found;
      match = AmpDecision{dtype, "list: " + name};
    }
  };
  look_in(options.in_f32, DType::f32);
  look_in(options.in_half, options.dtype);
  return match;
}

bool is_constant(const ir::Op& op) {
  return op.operands.empty() && std::holds_alternative<Pure>(*def_of(op).effects) &&
         source_kind(op) == SourceKind::none;
}

bool is_amp_candidate(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  return source_kind(op) == SourceKind::none && !std::holds_alternative<Store>(lower) &&
         !std::holds_alternative<Directive>(lower) && !is_scan(op) && !is_constant(op);
}

/// Chooses a precision for every op that reads floats, and inserts casts of the op's operands. Ops
/// that need the same value in the same dtype share one cast.
class Caster {
 public:
  Caster(const ir::Graph& graph, const AmpOptions& options)
      : options_(options), half_(options.dtype) {
    for (const auto& op : graph.ops) {
      for (const Value v : op->operands) recorded_[v] = v.dtype();
    }
    for (const ir::Output& o : graph.outputs) recorded_[o.value] = o.value.dtype();
  }

  void visit(ir::Op& op) {
    if (!is_amp_candidate(op)) {
      if (source_kind(op) == SourceKind::parameter || is_constant(op)) any_dtype_ops_.insert(&op);
      // Stores and directives read the recorded dtypes.
      for (Value& v : op.operands) v = as_recorded(v);
      return;
    }
    const std::optional<AmpDecision> chosen = precision(op);
    if (!chosen) return;
    report_.ops.push_back({&op, chosen->dtype, chosen->reason});
    if (any_dtype_ops_.contains(&op)) return;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Value from = op.operands[i];
      op.operands[i] = cast_to(from, stays_f32(op, i) ? DType::f32 : chosen->dtype);
      if (!stays_f32(op, i)) retype_attributes(op, recorded_.at(from), op.operands[i].dtype());
    }
    const std::vector<Type> types = infer_types(op);
    for (size_t i = 0; i < types.size(); ++i) op.results.at(i).type = types[i];
  }

  /// Casts `v` back to the dtype that it had before this pass. Used for outputs, stores and
  /// directives.
  Value as_recorded(Value v) { return cast_to(v, recorded_.at(v)); }

  AmpReport report() && { return std::move(report_); }

 private:
  /// Changes the dtype of Type attributes: the type of the input of a gradient op, which
  /// expand_gradients has recorded, has the dtype of the op's operands.
  static void retype_attributes(ir::Op& op, DType from, DType to) {
    if (!is_float(from) || from == to) return;
    for (const auto& [name, attr] : Attrs(op.attrs)) {
      const Type* type = std::get_if<Type>(&attr);
      if (type == nullptr || type->dtype != from) continue;
      Type wanted = *type;
      wanted.dtype = to;
      op.attrs.set(name, wanted);
    }
  }

  bool stays_f32(const ir::Op& op, size_t operand) const {
    const std::vector<int>& f32 = def_of(op).amp.f32_operands;
    return std::ranges::find(f32, static_cast<int>(operand)) != f32.end();
  }

  /// The precision chosen for the op, and the reason; nullopt if the op reads no f32 or
  /// half-precision value.
  std::optional<AmpDecision> precision(const ir::Op& op) {
    bool reads_floats = false, decided = false, all_half = true;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Value v = op.operands[i];
      if (v.dtype() != DType::f32 && v.dtype() != half_) continue;
      reads_floats = true;
      if (stays_f32(op, i) || any_dtype_ops_.contains(v.op())) continue;
      decided = true;
      all_half &= v.dtype() == half_;
    }
    if (!reads_floats) return {};
    if (std::optional<AmpDecision> match = amp_override(op, options_)) return match;
    switch (def_of(op).amp.amp_class) {
      case Amp::kHalf:
        return AmpDecision{half_, "class: gains from half"};
      case Amp::kF32:
        return AmpDecision{DType::f32, "class: sensitive to range"};
      case Amp::kFollow:
        if (decided) return AmpDecision{all_half ? half_ : DType::f32, "follows its operands"};
        any_dtype_ops_.insert(&op);
        return AmpDecision{DType::f32, "as its readers want it"};
    }
    return {};
  }

  Value cast_to(Value v, DType to) {
    const bool converts = v.dtype() != to && (v.dtype() == DType::f32 || v.dtype() == half_);
    if (!converts) return v;
    const std::pair key(v, to);
    if (const auto known = casts_.find(key); known != casts_.end()) return known->second;
    return casts_[key] = new_cast(v, to);
  }

  /// Casts `v` to `to`. For a reshaped parameter, casts the parameter and reshapes the result of
  /// the cast, so that other users of the parameter share the cast.
  Value new_cast(Value v, DType to) {
    const bool reshapes = is_alias(*v.op());
    if (reshapes && any_dtype_ops_.contains(v.op())) {
      return reshape(cast_to(v.op()->operands.front(), to), v.shape(), v.op()->loc);
    }
    report_.casts.push_back(cast(v, to, v.op()->loc));
    return report_.casts.back();
  }

  const AmpOptions& options_;
  DType half_;
  std::map<Value, DType> recorded_;  ///< value -> its dtype before this pass
  /// Ops that do not affect the precision chosen for their users: parameters, constants, and ops
  /// that read only parameters and constants.
  std::set<const ir::Op*> any_dtype_ops_;
  std::map<std::pair<Value, DType>, Value> casts_;
  AmpReport report_;
};

/// Erases the kNoAmp attributes. They have no further use, and cse would not merge ops that differ
/// only in this attribute.
bool erase_marks(ir::Graph& graph) {
  bool changed = false;
  for (const auto& op : graph.ops) {
    changed |= op->attrs.has(kNoAmp);
    op->attrs.erase(kNoAmp);
  }
  return changed;
}

bool run_amp_cast(ir::Program& program, const Options& options, const Target&) {
  if (!options.amp) return false;
  std::vector<ir::Graph*> graphs = scan_bodies(program.main());
  graphs.push_back(&program.main());
  bool changed = false;
  for (ir::Graph* graph : graphs) {
    const bool casts = !cast_for_amp(*graph, *options.amp).casts.empty();
    changed |= erase_marks(*graph) || casts;
  }
  return changed;
}

}  // namespace

void check_amp_names(const ir::Graph& recorded, const AmpOptions& options) {
  const std::set<std::string> layers = layers_of(recorded);
  std::vector<std::string> known(layers.begin(), layers.end());
  for (const auto& op : recorded.ops) known.push_back(op->name);
  for (const auto* names : {&options.in_f32, &options.in_half}) {
    for (const std::string& name : *names) {
      if (layers.contains(name) || find_op(name) != nullptr) continue;
      throw UserError("mixed precision: '" + name +
                      "' is neither an op nor a layer of the program" + did_you_mean(name, known));
    }
  }
  for (const std::string& name : options.in_f32) {
    if (std::ranges::find(options.in_half, name) == options.in_half.end()) continue;
    throw UserError("mixed precision: '" + name + "' is to run in f32 and in half");
  }
}

AmpReport cast_for_amp(ir::Graph& graph, const AmpOptions& options) {
  Caster caster(graph, options);
  rewrite_ops(graph, [&](ir::Op& op) {
    caster.visit(op);
    return Values();
  });
  for (ir::Output& o : graph.outputs) o.value = caster.as_recorded(o.value);
  return std::move(caster).report();
}

Pass amp_cast_pass() {
  return {.name = "amp_cast",
          .doc = "Automatic mixed precision: inserts casts so that each op runs in half or f32.",
          .needs = {},
          .provides = {},
          .run = run_amp_cast};
}

}  // namespace fluid
