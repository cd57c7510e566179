#include <map>

#include "ops/operators.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "passes/bucket.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"
#include "passes/summed_outputs.h"

namespace fluid {
namespace {

/// Gradient accumulation: turns the program of a whole step into the program of one micro-batch. A
/// micro-batch leaves carried values in the arena, which the next micro-batch reads:
/// - "<parameter>.grad": the sum of the gradients of a parameter.
/// - "<parameter>.rows": the sum of the row indices of a sparse gradient (see
/// Recipe::row_indices()).
/// - "<output>.part": the sum of an output.
/// - "<state>.part": the new value of a state that the recorded program updates, such as a running
///   mean. The next micro-batch reads this value instead of the state.
///
/// Only the last micro-batch stores the states, unless the step is skipped.
class Accumulation {
 public:
  Accumulation(ir::Graph& graph, const Recipe& recipe, const Options& options)
      : graph_(graph),
        recipe_(recipe),
        micro_batch_(options.micro_batch),
        adds_loss_(skips_on_nonfinite_loss(options)) {}

  void run() {
    if (micro_batch_ == MicroBatchKind::empty) {
      contribute_zeros();
      recipe_.replace_gradients([](Value g) { return zeros_like(g); });
      recipe_.replace_row_indices([](size_t, Value rows) { return zeros_like(rows); });
      replace_summed_outputs(graph_, [](const std::string&, Value v) { return zeros_like(v); });
      Value& loss = recipe_.directive().operands.at(0);
      loss = zeros_like(loss);
      std::erase_if(graph_.outputs, [](const ir::Output& o) { return !is_additive(o); });
      return;
    }
    assign_carried_offsets();
    carry_recorded_states();
    add_gradients();
    if (adds_loss_) add_loss();
    replace_summed_outputs(
        graph_, [&](const std::string& name, Value v) { return add_carried(name + ".part", v); });
    if (micro_batch_ == MicroBatchKind::last) return;
    std::erase_if(graph_.outputs, is_additive);
    for (const auto& [name, value] : values_to_carry_) carry(name, value);
  }

 private:
  static Value zeros_like(Value v) {
    return fill(*v.op()->graph(), {.type = v.type(), .value = 0});
  }

  /// Assigns an arena offset to each carried value, the same in all micro-batches. Gradients come
  /// first, in the bucket order of the all_reduce pass, so that a bucket can reuse the memory of
  /// the accumulated gradients.
  void assign_carried_offsets() {
    for (size_t i = recipe_.parameters().size(); i-- > 0;) {
      const Value gradient = recipe_.gradient(i);
      add_offset(recipe_.parameters()[i] + ".grad", bucket_bytes(gradient.type()));
    }
    recipe_.replace_row_indices([&](size_t i, Value rows) {
      add_offset(recipe_.parameters()[i] + ".rows", bucket_bytes(rows.type()));
      return rows;
    });
    if (adds_loss_) add_offset("train.part", recipe_.directive().operands.at(0));
    for (const auto& [name, value] : summed_outputs(graph_)) add_offset(name + ".part", value);
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) add_offset(op->symbol + ".part", op->operands.at(0));
    }
  }
  void add_offset(const std::string& name, Value v) {
    add_offset(name, align_up(v.type().bytes_at(1)));
  }
  void add_offset(const std::string& name, int64_t bytes) {
    offsets_[name] = end_;
    end_ += bytes;
  }

  /// For a rank without samples: replaces the operands of collectives by zeros, and erases the
  /// stores whose values depend on a feed. The values of the remaining stores do not depend on the
  /// samples of this rank.
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
      if (is_store(*op)) carried_states_[op->symbol] = Value();
    }
    if (micro_batch_ != MicroBatchKind::first) {
      rewrite_ops(graph_, [&](ir::Op& op) { return read_carried_states(op); });
    }
    if (micro_batch_ == MicroBatchKind::last) return;
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) values_to_carry_.emplace_back(op->symbol + ".part", op->operands.at(0));
    }
    graph_.erase_if(is_store);
  }

  /// If `op` reads a state that micro-batches update, replaces the operand by the value carried
  /// from the previous micro-batch. Returns no values, so that rewrite_ops() keeps `op`.
  Values read_carried_states(ir::Op& op) {
    for (Value& v : op.operands) {
      const auto found = carried_states_.find(v.op()->symbol);
      if (found == carried_states_.end() || !is_variable(*v.op())) continue;
      if (!found->second) found->second = carried(found->first + ".part", v.type());
      v = found->second;
    }
    return {};
  }

  /// Replaces the loss by the sum of the losses of this and the previous micro-batches.
  /// skip_nonfinite tests the sum, which is not finite if one of the losses is not finite.
  void add_loss() {
    ir::ScopedRecording as(graph_, recipe_.recording());
    Value& loss = recipe_.directive().operands.at(0);
    loss = add_carried("train.part", loss);
  }

  void add_gradients() {
    size_t i = 0;
    recipe_.replace_gradients([&](Value g) {
      const std::string& parameter = recipe_.parameters()[i++];
      ir::ScopedRecording as(graph_, {ir::Role::backward, recipe_.directive().loc,
                                      recipe_.directive().scope, parameter});
      return add_carried(parameter + ".grad", g);
    });
    recipe_.replace_row_indices(
        [&](size_t p, Value rows) { return add_carried(recipe_.parameters()[p] + ".rows", rows); });
  }

  Value carried(const std::string& name, const Type& type) {
    return record_source(graph_, "carried", name, type, {{"offset", offsets_.at(name)}},
                         recipe_.directive().loc);
  }
  void carry(const std::string& name, Value value) {
    ir::ScopedRecording as(graph_, recipe_.recording());
    record(graph_, "carry", {value}, {{"offset", offsets_.at(name)}}, recipe_.directive().loc);
    graph_.ops.back()->symbol = name;
  }

  /// Returns the sum of `v` over this and the previous micro-batches. The next micro-batch reads
  /// the sum as the carried value `name`.
  Value add_carried(const std::string& name, Value v) {
    const Value sum = micro_batch_ == MicroBatchKind::first ? v : v + carried(name, v.type());
    values_to_carry_.emplace_back(name, sum);
    return sum;
  }

  ir::Graph& graph_;
  const Recipe& recipe_;
  MicroBatchKind micro_batch_;
  bool adds_loss_;
  /// Name of each state that micro-batches update -> its value from the previous micro-batch. The
  /// value is null until an op reads the state.
  std::map<std::string, Value> carried_states_;
  std::vector<std::pair<std::string, Value>> values_to_carry_;
  std::map<std::string, int64_t> offsets_;  ///< name of a carried value -> offset in bytes
  int64_t end_ = 0;
};

bool run_accumulate(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || options.micro_batch == MicroBatchKind::whole) return false;
  Accumulation(graph, Recipe(*directive), options).run();
  if (options.micro_batch == MicroBatchKind::first ||
      options.micro_batch == MicroBatchKind::middle) {
    graph.erase_if([&](const ir::Op& op) { return &op == directive; });
    move_stores_last(graph);
  } else {
    move_op_last(graph, directive);
  }
  return true;
}

}  // namespace

Pass accumulate_pass() {
  return {.name = "accumulate",
          .doc = "Compiles one micro-batch: carries gradient and output sums on to the last one.",
          .needs = {"gradients"},
          .provides = {},
          .run = run_accumulate};
}

}  // namespace fluid
