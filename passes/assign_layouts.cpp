#include <algorithm>

#include "ops/functions.h"
#include "ops/internal_functions.h"
#include "ops/table.h"
#include "passes/copy_seconds.h"
#include "passes/layouts.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr double kTransposeCost = 2;  // cost of a transposing copy relative to a contiguous copy

/// Whether a value of this type may be channels-first or channels-last: a batch of images with
/// several channels and several pixels. Filters keep their layout.
bool has_layout_choice(const Type& type) {
  const Shape& s = type.shape;
  return s.size() == 4 && s[0].batch && !s[1].is(1) && !(s[2].is(1) && s[3].is(1));
}

/// A set of connected ops whose values must have the same layout.
struct LayoutRegion {
  std::vector<ir::Op*> ops;
  bool library = false;  ///< whether a library kernel can run one of the ops
  double saved = 0;      ///< predicted seconds that channels-last saves
};

class Assigner {
 public:
  Assigner(ir::Program& program, const Options& options, const Target& target)
      : graph_(program.main()), options_(options), target_(target) {
    for (const auto& op : graph_.ops) {
      if (std::ranges::any_of(values_of(*op), value_has_layout_choice))
        layout_agnostic_.insert(op.get());
    }
    std::erase_if(layout_agnostic_, [&](ir::Op* op) { return !is_layout_agnostic(*op); });
  }

  bool run() {
    std::set<const ir::Op*> chosen;
    for (LayoutRegion& region : regions()) {
      if (!region.library) continue;
      const std::set<const ir::Op*> inside(region.ops.begin(), region.ops.end());
      for (Value v : boundary_values(inside))
        region.saved -= kTransposeCost * copy_seconds(v, options_.batch, target_);
      if (region.saved > 0) chosen.insert(region.ops.begin(), region.ops.end());
    }
    if (!chosen.empty()) apply(chosen);
    return !chosen.empty();
  }

 private:
  static bool value_has_layout_choice(const Value& v) { return has_layout_choice(v.type()); }

  static Values values_of(ir::Op& op) {
    Values values = op.operands;
    for (size_t r = 0; r < op.results.size(); ++r) values.push_back(op.result(static_cast<int>(r)));
    return values;
  }

  /// Whether values of the op may be channels-last. The op must be a Map or Reduce, because only
  /// their generated code accepts any layout. If the op has library kernels, one of them must
  /// accept channels-last too.
  bool is_layout_agnostic(const ir::Op& op) const {
    const OpDef& def = def_of(op);
    if (!std::holds_alternative<Map>(*def.lower) && !std::holds_alternative<Reduce>(*def.lower)) {
      return false;
    }
    return def.kernels->empty() || library_seconds(op, true).has_value();
  }

  /// Connected components of the layout-agnostic ops. Two ops are connected if both read or produce
  /// a value for which has_layout_choice() holds.
  std::vector<LayoutRegion> regions() const {
    std::map<Value, std::vector<ir::Op*>> touching;
    for (const auto& op : graph_.ops) {
      if (!layout_agnostic_.contains(op.get())) continue;
      for (Value v : values_of(*op)) {
        if (has_layout_choice(v.type()) && layout_agnostic_.contains(v.op()))
          touching[v].push_back(op.get());
      }
    }
    std::vector<LayoutRegion> regions;
    std::set<const ir::Op*> seen;
    for (const auto& op : graph_.ops) {
      if (!layout_agnostic_.contains(op.get()) || seen.contains(op.get())) continue;
      regions.emplace_back();
      std::vector<ir::Op*> todo = {op.get()};
      while (!todo.empty()) {
        ir::Op* next = todo.back();
        todo.pop_back();
        if (!seen.insert(next).second) continue;
        add(regions.back(), *next);
        for (Value v : values_of(*next)) {
          const auto others = touching.find(v);
          if (others == touching.end()) continue;
          todo.insert(todo.end(), others->second.begin(), others->second.end());
        }
      }
    }
    return regions;
  }

  void add(LayoutRegion& region, ir::Op& op) const {
    region.ops.push_back(&op);
    if (def_of(op).kernels->empty()) return;
    region.library = true;
    region.saved += best_seconds(op, false) - best_seconds(op, true);
  }

  double best_seconds(const ir::Op& op, bool nhwc) const {
    const auto program = program_with_layout(op, nhwc);
    const double generated = target_.generated_seconds(*program->main().ops.back());
    return std::min(generated, library_seconds(op, nhwc).value_or(generated));
  }

  /// A program that holds only `op`. If `nhwc` is true, the values with a layout choice are
  /// channels-last.
  std::unique_ptr<ir::Program> program_with_layout(const ir::Op& op, bool nhwc) const {
    auto program = concrete_copy({&op}, options_.batch);
    ir::Op& copy = *program->main().ops.back();
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (nhwc && has_layout_choice(op.operands[i].type()))
        type_of(copy.operands[i]).layout = channels_last();
    }
    for (size_t r = 0; r < op.results.size(); ++r) {
      if (nhwc && has_layout_choice(op.results[r].type))
        copy.results[r].type.layout = channels_last();
    }
    return program;
  }

  std::optional<double> library_seconds(const ir::Op& op, bool nhwc) const {
    const auto program = program_with_layout(op, nhwc);
    const ir::Op& copy = *program->main().ops.back();
    std::optional<double> best;
    for (const KernelCandidate& candidate : target_.candidates(copy, {})) {
      if (candidate.accepts_layouts(copy, copy) && (!best || candidate.seconds < *best))
        best = candidate.seconds;
    }
    return best;
  }

  static Type& type_of(const Value& v) {
    return v.op()->results[static_cast<size_t>(v.index())].type;
  }

  /// Values that need a copy to another layout if only the ops `nhwc_ops` are channels-last: the
  /// producer of such a value is channels-last and a user is not, or the reverse. Graph outputs
  /// of channels-last ops need a copy, too. Ordered by the first user that needs the copy; graph
  /// outputs are last.
  Values boundary_values(const std::set<const ir::Op*>& nhwc_ops) const {
    Values values;
    std::set<Value> seen;
    const auto take = [&](Value v) {
      if (seen.insert(v).second) values.push_back(v);
    };
    for (const auto& op : graph_.ops) {
      for (const Value& v : op->operands) {
        if (!has_layout_choice(v.type())) continue;
        if (nhwc_ops.contains(op.get()) != nhwc_ops.contains(v.op())) take(v);
      }
    }
    for (const ir::Output& o : graph_.outputs) {
      if (has_layout_choice(o.value.type()) && nhwc_ops.contains(o.value.op())) take(o.value);
    }
    return values;
  }

  /// Makes the results of the chosen ops channels-last. Inserts copies of the boundary_values(),
  /// which convert the values between layouts.
  void apply(const std::set<const ir::Op*>& chosen) {
    const Values border = boundary_values(chosen);
    for (const auto& op : graph_.ops) {
      if (!chosen.contains(op.get())) continue;
      for (ir::Result& r : op->results) {
        if (has_layout_choice(r.type)) r.type.layout = channels_last();
      }
    }
    std::map<Value, Value> copies;
    for (Value v : border) copies[v] = add_copy(v, !chosen.contains(v.op()));
    std::set<const ir::Op*> made;
    for (const auto& [from, to] : copies) made.insert(to.op());
    for (const auto& op : graph_.ops) {
      if (made.contains(op.get())) continue;
      for (Value& v : op->operands) {
        if (copies.contains(v) && chosen.contains(op.get()) != chosen.contains(v.op())) {
          v = copies.at(v);
        }
      }
    }
    for (ir::Output& o : graph_.outputs) {
      if (copies.contains(o.value) && chosen.contains(o.value.op())) o.value = copies.at(o.value);
    }
  }

  /// Inserts a copy of `v` after the op that produces `v`. The copy is channels-last if `nhwc` is
  /// true, else it has the plain layout.
  Value add_copy(Value v, bool nhwc) {
    ir::ScopedRecording as(graph_, recording_of(*v.op()));
    const Value other = internal::copy(v, v.op()->loc);
    if (nhwc) type_of(other).layout = channels_last();
    const auto at = std::ranges::find(graph_.ops, v.op(), &std::unique_ptr<ir::Op>::get);
    graph_.move_tail(graph_.ops.size() - 1, static_cast<size_t>(at - graph_.ops.begin()) + 1);
    return other;
  }

  ir::Graph& graph_;
  const Options& options_;
  const Target& target_;
  /// Ops for which is_layout_agnostic() holds and that have an operand or result with a layout
  /// choice.
  std::set<ir::Op*> layout_agnostic_;
};

bool run_assign_layouts(ir::Program& program, const Options& options, const Target& target) {
  return Assigner(program, options, target).run();
}

}  // namespace

Pass assign_layouts_pass() {
  return {.name = "assign_layouts",
          .doc = "Sets channels-last layouts where the library kernels gain more than copies cost.",
          .needs = {"typed"},
          .provides = {},
          .run = run_assign_layouts};
}

}  // namespace fluid
