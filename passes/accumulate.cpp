#include <map>

#include "ops/operators.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "passes/bucket.h"
#include "passes/memory_plan.h"
#include "passes/outputs_add_up.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Turns the program of a whole step into the program of one micro-batch. Micro-batches carry
/// values to the next one: sums of gradients as "<parameter>.grad", sums of outputs as
/// "<output>.part". New values of recorded states, such as running statistics, are carried as
/// "<state>.part". The next micro-batch reads "<state>.part" in place of the state. Only the last
/// micro-batch stores the state, if the step is applied.
class Accumulation {
 public:
  Accumulation(ir::Graph& graph, const Recipe& recipe, const Options& options)
      : graph_(graph),
        recipe_(recipe),
        slice_(options.slice),
        adds_loss_(decides_by_loss(options)) {}

  void run() {
    if (slice_ == MicroBatchKind::empty) {
      contribute_zeros();
      recipe_.replace_gradients([](Value g) { return zeros_like(g); });
      replace_summands(graph_, [](const std::string&, Value v) { return zeros_like(v); });
      Value& loss = recipe_.directive().operands.at(0);
      loss = zeros_like(loss);
      std::erase_if(graph_.outputs, [](const ir::Output& o) { return !is_additive(o); });
      return;
    }
    lay_out();
    carry_recorded_states();
    add_gradients();
    if (adds_loss_) add_loss();
    replace_summands(graph_,
                     [&](const std::string& name, Value v) { return added(name + ".part", v); });
    if (slice_ == MicroBatchKind::last) return;
    std::erase_if(graph_.outputs, is_additive);
    for (const auto& [name, value] : kept_) carry(name, value);
  }

 private:
  static Value zeros_like(Value v) {
    return fill(*v.op()->graph(), {.type = v.type(), .value = 0});
  }

  /// Assigns the carried values offsets that are equal in all micro-batches. Gradients come first,
  /// in the order of all_reduce's buckets, so that the buckets can alias the sums.
  void lay_out() {
    for (size_t i = recipe_.parameters().size(); i-- > 0;) {
      const Value gradient = recipe_.gradient(i);
      place(recipe_.parameters()[i] + ".grad", bucket_bytes(gradient.type()));
    }
    if (adds_loss_) place("train.part", recipe_.directive().operands.at(0));
    for (const auto& [name, value] : summands(graph_)) place(name + ".part", value);
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) place(op->symbol + ".part", op->operands.at(0));
    }
  }
  void place(const std::string& name, Value v) { place(name, aligned(v.type().bytes_at(1))); }
  void place(const std::string& name, int64_t bytes) {
    offsets_[name] = end_;
    end_ += bytes;
  }

  /// For a rank without samples: contributes zeros to the collectives, and drops the stores that
  /// depend on a feed. The remaining stores depend only on other ranks' samples.
  void contribute_zeros() {
    rewrite_ops(graph_, [](ir::Op& op) {
      if (!is_collective(op)) return Values();
      for (Value& v : op.operands) v = zeros_like(v);
      return Values();
    });
    graph_.erase_if([](const ir::Op& op) {
      return is_store(op) && std::ranges::any_of(ancestors(op.operands), [](const ir::Op* from) {
               return source_kind(*from) == SourceKind::feed;
             });
    });
  }

  void carry_recorded_states() {
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) diverted_[op->symbol] = Value();
    }
    if (slice_ != MicroBatchKind::first) {
      rewrite_ops(graph_, [&](ir::Op& op) { return reading_part(op); });
    }
    if (slice_ == MicroBatchKind::last) return;
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) kept_.emplace_back(op->symbol + ".part", op->operands.at(0));
    }
    graph_.erase_if(is_store);
  }

  /// Redirects operands of `op` from states that an earlier micro-batch updated to the carried
  /// values.
  Values reading_part(ir::Op& op) {
    for (Value& v : op.operands) {
      const auto found = diverted_.find(v.op()->symbol);
      if (found == diverted_.end() || !is_variable(*v.op())) continue;
      if (!found->second) found->second = carried(found->first + ".part", v.type());
      v = found->second;
    }
    return {};
  }

  /// Sums the losses of the micro-batches. The sum is not finite if one of the losses is not; the
  /// step is then skipped.
  void add_loss() {
    ir::RecordAs as(graph_, recipe_.recording());
    Value& loss = recipe_.directive().operands.at(0);
    loss = added("train.part", loss);
  }

  void add_gradients() {
    size_t i = 0;
    recipe_.replace_gradients([&](Value g) {
      const std::string& parameter = recipe_.parameters()[i++];
      ir::RecordAs as(graph_, {ir::Role::backward, recipe_.directive().loc,
                               recipe_.directive().scope, parameter});
      return added(parameter + ".grad", g);
    });
  }

  Value carried(const std::string& name, const Type& type) {
    return record_source(graph_, "carried", name, type, {{"offset", offsets_.at(name)}},
                         recipe_.directive().loc);
  }
  void carry(const std::string& name, Value value) {
    ir::RecordAs as(graph_, recipe_.recording());
    record(graph_, "carry", {value}, {{"offset", offsets_.at(name)}}, recipe_.directive().loc);
    graph_.ops.back()->symbol = name;
  }

  /// `v` plus the value carried from the previous micro-batches.
  Value added(const std::string& name, Value v) {
    const Value sum = slice_ == MicroBatchKind::first ? v : v + carried(name, v.type());
    kept_.emplace_back(name, sum);
    return sum;
  }

  ir::Graph& graph_;
  const Recipe& recipe_;
  MicroBatchKind slice_;
  bool adds_loss_;
  std::map<std::string, Value> diverted_;  ///< by recorded state: its carried value, once read
  std::vector<std::pair<std::string, Value>> kept_;
  std::map<std::string, int64_t> offsets_;  ///< offsets of carried values, by name
  int64_t end_ = 0;
};

bool run_accumulate(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || options.slice == MicroBatchKind::whole) return false;
  Accumulation(graph, Recipe(*directive), options).run();
  if (options.slice == MicroBatchKind::first || options.slice == MicroBatchKind::middle) {
    graph.erase_if([&](const ir::Op& op) { return &op == directive; });
    move_stores_last(graph);
  } else {
    move_last(graph, directive);
  }
  return true;
}

}  // namespace

Pass accumulate_pass() {
  return {.name = "accumulate",
          .doc = "Compiles one micro-batch: carries gradient and output sums on to the last one.",
          .needs = {"gradients"},
          .gives = {},
          .run = run_accumulate};
}

}  // namespace fluid
