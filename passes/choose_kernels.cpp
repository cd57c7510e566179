#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ops/functions.h"
#include "ops/internal_functions.h"
#include "ops/op_kinds.h"
#include "ops/table.h"
#include "passes/compose.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr size_t kLongestEpilogue = 2;  // bias, activation

bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<Map>(*def_of(op).lower) && op.results.size() == 1 &&
         std::holds_alternative<Pure>(*def_of(op).effects);
}

/// The single reader of `op`'s single result. Null unless the reader is an elementwise op of the
/// same type and role and the result is no output.
ir::Op* single_user(const ir::Op& op, const Uses& uses, const std::set<Value>& outputs) {
  const Value v(const_cast<ir::Op*>(&op), 0);
  const auto readers = uses.find(v);
  if (op.results.size() != 1 || outputs.contains(v)) return nullptr;
  if (readers == uses.end() || readers->second.size() != 1) return nullptr;
  ir::Op* reader = readers->second.front();
  if (!is_elementwise(*reader) || reader->results[0].type != v.type()) return nullptr;
  return reader->role == op.role ? reader : nullptr;
}

/// A reduction of fewer products per element than this is fused like an elementwise op.
constexpr double kContraction = 16;

/// A chain of ops and the library kernel that runs it.
struct Taken {
  std::vector<ir::Op*> ops;
  Claim claim;
  double library;  ///< seconds, including the savings of prevented fusions
  double generated;
};

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

class Chooser {
 public:
  Chooser(ir::Program& program, const Options& options, const Target& target)
      : program_(program), options_(options), target_(target), uses_(program.main().uses()) {
    for (const ir::Output& o : program.main().outputs) outputs_.insert(o.value);
  }

  bool run() {
    std::vector<Taken> chosen;
    std::unordered_map<const ir::Op*, size_t> positions;
    for (const auto& op : program_.main().ops) {
      positions.emplace(op.get(), positions.size());
      if (def_of(*op).kernels->empty()) continue;
      std::optional<Taken> best = choose(op.get());
      if (!best) continue;
      taken_.insert(best->ops.begin(), best->ops.end());
      chosen.push_back(std::move(*best));
    }
    std::ranges::sort(chosen, {}, [&](const Taken& t) { return positions.at(t.ops.back()); });
    wrap(chosen);
    return !chosen.empty();
  }

 private:
  /// The longest chain from `head` that a library kernel runs faster than generated code runs
  /// `head` alone. The epilogue counts as free in generated code, which fuses it with `head` or
  /// with other neighbours.
  std::optional<Taken> choose(ir::Op* head) {
    const double generated = generated_seconds(*head);
    std::optional<Taken> best;
    std::vector<ir::Op*> chain;
    for (ir::Op* op = head;
         op != nullptr && !taken_.contains(op) && chain.size() <= kLongestEpilogue;
         op = single_user(*op, uses_, outputs_)) {
      chain.push_back(op);
      const std::optional<Claim>& claim = fastest(chain);
      if (!claim) continue;
      const double library = claim->seconds + prevented_seconds(chain);
      if (library < generated) best = Taken{chain, *claim, library, generated};
    }
    return best;
  }

  double generated_seconds(const ir::Op& op) {
    const auto [known, added] = generated_.try_emplace(kinds_.of(op));
    if (added) {
      const auto alone = concrete_copy({&op}, options_.batch);
      known->second = target_.generated_seconds(*alone->main().ops.back());
    }
    return known->second;
  }

  /// Memory traffic, in seconds, that fusion with the neighbours of the chain would have saved.
  double prevented_seconds(const std::vector<ir::Op*>& chain) const {
    double seconds = 0;
    if (!is_contraction(*chain.front())) {
      for (Value v : chain.front()->operands) {
        if (fuses(*v.op())) seconds += copy_seconds(v);
      }
    }
    const Value result = chain.back()->result();
    const auto readers = uses_.find(result);
    const bool fused =
        readers != uses_.end() && std::ranges::any_of(readers->second, [&](const ir::Op* r) {
          return fuses(*r) && r->results[0].type.shape == result.shape();
        });
    return fused ? seconds + copy_seconds(result) : seconds;
  }

  /// Whether the op sums many products. Generated code fuses neither producers nor later reductions
  /// into the loops of such an op.
  bool is_contraction(const ir::Op& op) const {
    const auto program = concrete_copy({&op}, options_.batch);
    const ir::Op& copy = *program->main().ops.back();
    std::vector<Type> in, out;
    for (const Value& v : copy.operands) in.push_back(v.type());
    for (const ir::Result& r : copy.results) out.push_back(r.type);
    const CostCtx context{in, out, copy.attrs};
    return (*def_of(copy).cost)(context).flops > 2 * kContraction * context.numel_out();
  }

  static bool fuses(const ir::Op& op) {
    const OpDef& def = def_of(op);
    return def.kernels->empty() &&
           (std::holds_alternative<Map>(*def.lower) || std::holds_alternative<Reduce>(*def.lower));
  }

  double copy_seconds(Value v) const {
    const auto program = concrete_copy({v.op()}, options_.batch);
    return target_.generated_seconds(
        *internal::copy(program->main().ops.back()->result(v.index()), {}).op());
  }

  /// Caches fastest_of() by GroupKey.
  const std::optional<Claim>& fastest(const std::vector<ir::Op*>& chain) {
    const std::vector<const ir::Op*> ops(chain.begin(), chain.end());
    const auto [known, added] = fastest_.try_emplace(key_of_group(ops, {}, kinds_));
    if (added) known->second = fastest_of(ops);
    return known->second;
  }

  std::optional<Claim> fastest_of(const std::vector<const ir::Op*>& chain) const {
    const auto copy = concrete_copy(chain, options_.batch);
    const auto& ops = copy->main().ops;
    const ir::Op& head = *ops[ops.size() - chain.size()];
    Chain epilogue;
    for (size_t i = ops.size() - chain.size() + 1; i < ops.size(); ++i) {
      epilogue.push_back(ops[i].get());
    }
    const ir::Op& last = *ops.back();
    for (const Claim& claim : target_.claims(head, epilogue)) {
      if (claim.fits(head, last) && suits_mode(claim)) return claim;
    }
    return std::nullopt;
  }

  /// In training a kernel must propagate NaN, so that divergence stays visible. In inference the
  /// result of a sample must not depend on other samples.
  bool suits_mode(const Claim& claim) const {
    return options_.mode == Mode::train ? claim.keeps_nan : !claim.mixes_samples;
  }

  /// The operand of the fused op that its result may overwrite: the addend of the last op, unless
  /// the head reads it too.
  static std::optional<int64_t> overwritten(const Taken& taken) {
    if (!taken.claim.adds_in_place) return std::nullopt;
    const std::vector<ir::Op*>& ops = taken.ops;
    const Values& summands = ops.back()->operands;
    const Value addend = summands.at(summands.at(0).op() == ops.at(ops.size() - 2) ? 1 : 0);
    if (std::ranges::count(ops.front()->operands, addend) > 0) return std::nullopt;
    Values read;  // values from outside, by first use
    for (const ir::Op* op : ops) {
      for (const Value& v : op->operands) {
        if (std::ranges::count(ops, v.op()) + std::ranges::count(read, v) == 0) read.push_back(v);
      }
    }
    return std::ranges::find(read, addend) - read.begin();
  }

  void wrap(const std::vector<Taken>& chosen) {
    std::vector<std::vector<ir::Op*>> chains;
    std::vector<std::optional<int64_t>> in_place;
    for (const Taken& taken : chosen) {
      chains.push_back(taken.ops);
      in_place.push_back(overwritten(taken));
    }
    const std::vector<ir::Op*> fused = compose(program_, chains);
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (in_place[i]) fused[i]->attrs.set("in_place", *in_place[i]);
      note_kernel(*fused[i], chosen[i]);
    }
  }

  static void note_kernel(ir::Op& fused, const Taken& taken) {
    fused.attrs.set("kernel", taken.claim.kernel);
    fused.attrs.set("predicted_ns",
                    std::vector{nanoseconds(taken.library), nanoseconds(taken.generated)});
    if (taken.claim.workspace > 0) fused.attrs.set("workspace_bytes", taken.claim.workspace);
  }

  ir::Program& program_;
  const Options& options_;
  const Target& target_;
  Uses uses_;
  std::set<Value> outputs_;
  std::set<const ir::Op*> taken_;  ///< ops that belong to a chosen chain
  OpKinds kinds_;
  std::unordered_map<int, double> generated_;  ///< seconds, by kind
  std::unordered_map<GroupKey, std::optional<Claim>, GroupKeyHash> fastest_;
};

bool run_choose_kernels(ir::Program& program, const Options& options, const Target& target) {
  return Chooser(program, options, target).run();
}

}  // namespace

Pass choose_kernels_pass() {
  return {.name = "choose_kernels",
          .doc = "Selects library kernels, with fused epilogues, where they beat generated code.",
          .needs = {"typed"},
          .gives = {},
          .run = run_choose_kernels};
}

}  // namespace fluid
