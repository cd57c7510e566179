#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ops/functions.h"
#include "ops/op_kinds.h"
#include "ops/table.h"
#include "passes/compose.h"
#include "passes/copy_seconds.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

// maximum number of epilogue ops: scale, bias, activation, conversion to integers
constexpr size_t kMaxEpilogue = 4;

bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<Map>(*def_of(op).lower) && op.results.size() == 1 &&
         std::holds_alternative<Pure>(*def_of(op).effects);
}

/// The only user of the only result of `op`, if the user can be the next epilogue op. Such a
/// user is elementwise, and its result has the same shape, layout and role as that of `op`. Null if
/// there is no such user, or if the result of `op` is a graph output.
ir::Op* single_user(const ir::Op& op, const Uses& uses, const std::set<Value>& outputs) {
  ir::Op* user = only_reader(op, uses, outputs);
  if (user == nullptr) return nullptr;
  const Type &before = op.results[0].type, &after = user->results[0].type;
  const bool follows = is_elementwise(*user) && user->role == op.role &&
                       after.shape == before.shape && after.layout == before.layout;
  return follows ? user : nullptr;
}

/// A reduction with more than this number of products per result element is a contraction. Other
/// reductions are fused like elementwise ops.
constexpr double kMinContractionProducts = 16;

/// An op with its epilogue ops, and the library kernel chosen to run them.
struct ChosenKernel {
  std::vector<ir::Op*> ops;
  KernelCandidate candidate;
  double library;    ///< predicted seconds of the library kernel, plus prevented_seconds()
  double generated;  ///< predicted seconds of generated code
};

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

class Chooser {
 public:
  Chooser(ir::Program& program, const Options& options, const Target& target)
      : program_(program), options_(options), target_(target), uses_(program.main().uses()) {
    for (const ir::Output& o : program.main().outputs) outputs_.insert(o.value);
  }

  bool run() {
    std::vector<ChosenKernel> chosen;
    std::unordered_map<const ir::Op*, size_t> positions;
    for (const auto& op : program_.main().ops) {
      positions.emplace(op.get(), positions.size());
      if (def_of(*op).kernels->empty()) continue;
      std::optional<ChosenKernel> best = choose(op.get());
      if (!best) continue;
      chosen_ops_.insert(best->ops.begin(), best->ops.end());
      chosen.push_back(std::move(*best));
    }
    std::ranges::sort(chosen, {},
                      [&](const ChosenKernel& t) { return positions.at(t.ops.back()); });
    wrap(chosen);
    return !chosen.empty();
  }

 private:
  /// The library kernel for a chain of `head` and epilogue ops, or nullopt if generated code is
  /// faster. Chooses the longest chain for which a library kernel is faster than generated code for
  /// `head` alone. Generated code is assumed to run the epilogue at no cost, because it fuses
  /// epilogue ops with `head` or with their users.
  std::optional<ChosenKernel> choose(ir::Op* head) {
    const double generated = generated_seconds(*head);
    std::optional<ChosenKernel> best;
    std::vector<ir::Op*> chain;
    for (ir::Op* op = head;
         op != nullptr && !chosen_ops_.contains(op) && chain.size() <= kMaxEpilogue;
         op = single_user(*op, uses_, outputs_)) {
      chain.push_back(op);
      const std::optional<KernelCandidate>& candidate = fastest(chain);
      if (!candidate) continue;
      const double library = candidate->seconds + prevented_seconds(chain);
      if (library < generated) best = ChosenKernel{chain, *candidate, library, generated};
    }
    return best;
  }

  double generated_seconds(const ir::Op& op) {
    const auto [known, added] = generated_.try_emplace(kinds_.kind_id(op));
    if (added) {
      const auto alone = concrete_copy({&op}, options_.batch);
      known->second = target_.generated_seconds(*alone->main().ops.back());
    }
    return known->second;
  }

  /// Predicted time, in seconds, of the memory traffic that generated code would save by fusing the
  /// chain with its producers and users. A library kernel prevents such fusion.
  double prevented_seconds(const std::vector<ir::Op*>& chain) const {
    double seconds = 0;
    if (!is_contraction(*chain.front())) {
      for (Value v : chain.front()->operands) {
        if (fuses(*v.op())) seconds += copy_seconds(v, options_.batch, target_);
      }
    }
    const Value result = chain.back()->result();
    const auto users = uses_.find(result);
    const bool fused =
        users != uses_.end() && std::ranges::any_of(users->second, [&](const ir::Op* r) {
          return fuses(*r) && r->results[0].type.shape == result.shape();
        });
    return fused ? seconds + copy_seconds(result, options_.batch, target_) : seconds;
  }

  /// Whether the op is a contraction: a sum of more than kMinContractionProducts products per
  /// result element. Generated code does not fuse a contraction with its producers or with other
  /// reductions.
  bool is_contraction(const ir::Op& op) const {
    const auto program = concrete_copy({&op}, options_.batch);
    const ir::Op& copy = *program->main().ops.back();
    std::vector<Type> in, out;
    for (const Value& v : copy.operands) in.push_back(v.type());
    for (const ir::Result& r : copy.results) out.push_back(r.type);
    const CostCtx context{in, out, copy.attrs};
    return (*def_of(copy).cost)(context).flops > 2 * kMinContractionProducts * context.numel_out();
  }

  static bool fuses(const ir::Op& op) {
    const OpDef& def = def_of(op);
    return def.kernels->empty() &&
           (std::holds_alternative<Map>(*def.lower) || std::holds_alternative<Reduce>(*def.lower));
  }

  /// Result of fastest_of(), cached by the structure of the chain (GroupKey).
  const std::optional<KernelCandidate>& fastest(const std::vector<ir::Op*>& chain) {
    const std::vector<const ir::Op*> ops(chain.begin(), chain.end());
    const auto [known, added] = fastest_.try_emplace(group_key(ops, {}, kinds_));
    if (added) known->second = fastest_of(ops);
    return known->second;
  }

  std::optional<KernelCandidate> fastest_of(const std::vector<const ir::Op*>& chain) const {
    const auto copy = concrete_copy(chain, options_.batch);
    const auto& ops = copy->main().ops;
    const ir::Op& head = *ops[ops.size() - chain.size()];
    EpilogueOps epilogue;
    for (size_t i = ops.size() - chain.size() + 1; i < ops.size(); ++i) {
      epilogue.push_back(ops[i].get());
    }
    const ir::Op& last = *ops.back();
    for (const KernelCandidate& candidate : target_.candidates(head, epilogue)) {
      if (candidate.accepts_layouts(head, last) && suits_mode(candidate)) return candidate;
    }
    return std::nullopt;
  }

  /// Whether the library kernel may be used in Options::mode. In training, a kernel must propagate
  /// NaN, so that divergence stays visible. In inference, the result of a sample must not depend on
  /// other samples.
  bool suits_mode(const KernelCandidate& candidate) const {
    return options_.mode == Mode::train ? candidate.propagates_nan : !candidate.mixes_samples;
  }

  /// Index of the fused op's operand that the result may overwrite: the addend of the last epilogue
  /// op. nullopt if the kernel may not overwrite the addend, or if the head also reads the addend.
  static std::optional<int64_t> overwritten(const ChosenKernel& kernel) {
    if (!kernel.candidate.overwrites_addend) return std::nullopt;
    const std::vector<ir::Op*>& ops = kernel.ops;
    const Values& summands = ops.back()->operands;
    const Value addend = summands.at(summands.at(0).op() == ops.at(ops.size() - 2) ? 1 : 0);
    if (std::ranges::count(ops.front()->operands, addend) > 0) return std::nullopt;
    Values read;  // operands of the fused op, in order of first use
    for (const ir::Op* op : ops) {
      for (const Value& v : op->operands) {
        if (std::ranges::count(ops, v.op()) + std::ranges::count(read, v) == 0) read.push_back(v);
      }
    }
    return std::ranges::find(read, addend) - read.begin();
  }

  void wrap(const std::vector<ChosenKernel>& chosen) {
    std::vector<std::vector<ir::Op*>> chains;
    std::vector<std::optional<int64_t>> in_place;
    for (const ChosenKernel& kernel : chosen) {
      chains.push_back(kernel.ops);
      in_place.push_back(overwritten(kernel));
    }
    const std::vector<ir::Op*> fused = fuse_chains(program_, chains);
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (in_place[i]) fused[i]->attrs.set("in_place", *in_place[i]);
      note_kernel(*fused[i], chosen[i]);
    }
  }

  static void note_kernel(ir::Op& fused, const ChosenKernel& kernel) {
    fused.attrs.set("kernel", kernel.candidate.kernel);
    fused.attrs.set("predicted_ns",
                    std::vector{nanoseconds(kernel.library), nanoseconds(kernel.generated)});
    if (kernel.candidate.measured) fused.attrs.set("measured", true);
    if (kernel.candidate.workspace > 0)
      fused.attrs.set("workspace_bytes", kernel.candidate.workspace);
  }

  ir::Program& program_;
  const Options& options_;
  const Target& target_;
  Uses uses_;
  std::set<Value> outputs_;
  std::set<const ir::Op*> chosen_ops_;  ///< ops that a chosen library kernel runs
  OpKinds kinds_;
  std::unordered_map<int, double> generated_;  ///< OpKinds::kind_id() -> run time in s
  std::unordered_map<GroupKey, std::optional<KernelCandidate>, GroupKeyHash> fastest_;
};

bool run_choose_kernels(ir::Program& program, const Options& options, const Target& target) {
  return Chooser(program, options, target).run();
}

}  // namespace

Pass choose_kernels_pass() {
  return {.name = "choose_kernels",
          .doc = "Selects library kernels, with fused epilogues, where they beat generated code.",
          .needs = {"typed"},
          .provides = {},
          .run = run_choose_kernels};
}

}  // namespace fluid
