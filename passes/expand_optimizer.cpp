#include <algorithm>
#include <functional>
#include <set>

#include "ops/arguments.h"
#include "ops/functions.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/plateau.h"
#include "ops/optim/schedule.h"
#include "ops/optim/whole_parameter.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "passes/collective_order.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Name of two attributes. For an optimizer: the weight decay factor. For a parameter, a bool:
/// whether weight decay applies to the parameter.
constexpr const char* kDecay = "weight_decay";
/// Name of a parameter attribute: scales the weight decay of the parameter.
constexpr const char* kDecayScale = "decay_scale";

/// Replaces the train directive by optimizer ops and by the stores of the values that they update.
class Expansion {
 public:
  Expansion(ir::Graph& graph, const Recipe& recipe)
      : graph_(graph),
        recipe_(recipe),
        train_(recipe.directive()),
        settings_(optimizer_settings(train_.attrs)) {}

  void run() {
    ir::ScopedRecording as(graph_, recipe_.recording());
    if (recipe_.step_predicate()) predicate_recorded_stores();
    const Value counter = state(recipe_.state_name(kUpdateCounter), Type{i64, {}, {}});
    const OpDef& optimizer = op_named(train_.attrs.get<std::string>("optimizer"), train_.loc);
    if (train_.attrs.has("schedule")) schedule(counter);
    if (reads_whole_parameters(optimizer)) reject_sparse_parameters(*optimizer.name);
    if (train_.attrs.get_or("lookahead_every", int64_t{0}) > 0) {
      reject_sparse_parameters("lookahead");
    }
    reject_sparse_parameters("max_norm", /*only_bounded=*/true);
    if (reads_norms(optimizer)) record_norms(optimizer, counter);
    for (size_t i = 0; i < recipe_.parameters().size(); ++i) update(i, optimizer, counter);
    all_gather_parameters(counter);
    stores_.emplace_back(counter.op()->symbol, if_applied(counter + 1, counter));
    if (ir::Op* rng = graph_.find("state", kRandomState)) {
      stores_.emplace_back(kRandomState, next_random_state(rng->result()));
    }
    for (auto& [name, value] : stores_) record_store(graph_, name, value, train_.loc);
  }

 private:
  /// Operands and attributes of a parameter's optimizer op. `operands` lacks the operands for
  /// OptimizerTraits::scalars, which update() appends.
  struct ParameterUpdate {
    const OpDef* optimizer = nullptr;
    Values operands;
    /// Per operand: the variable that the optimizer updates, or null for an operand that is not
    /// updated.
    Values variables;
    Attrs settings;
  };

  /// The WholeParameter passed to OptimizerTensor::record, for the parameter with index `index`.
  class ParameterOnRanks : public WholeParameter {
   public:
    ParameterOnRanks(Expansion& expansion, size_t index, const ParameterUpdate& update)
        : expansion_(expansion), index_(index), update_(update) {}
    const Values& operands() const override { return update_.operands; }
    const Attrs& settings() const override { return update_.settings; }
    const Shape& shape() const override { return whole().shape(); }
    Value padded(Value shard) override {
      if (!expansion_.recipe_.is_sharded()) return shard;
      return expansion_.padded_to_whole(whole(), index_, shard);
    }
    Value shard_of(Value of_whole) override { return expansion_.own_shard_of(index_, of_whole); }
    Values sum_over_shards(const Values& terms) override {
      if (!expansion_.recipe_.is_sharded()) return terms;
      return record_collective(expansion_.graph_, "all_reduce", terms, expansion_.train_.loc);
    }
    Value sharded_state(const std::string& name) override {
      return expansion_.state_of(index_, name, param().type());
    }
    Value state(const std::string& name, const Type& type) override {
      return expansion_.state(expansion_.state_name(index_, name), type);
    }
    void set_state(Value state, Value updated) override {
      expansion_.stores_.emplace_back(state.op()->symbol, expansion_.if_applied(updated, state));
    }

   private:
    Value whole() const { return update_.variables[0]; }

    Expansion& expansion_;
    size_t index_;
    const ParameterUpdate& update_;
  };

  /// Name of the variable for optimizer state `key`, such as "m", of parameter `index`.
  std::string state_name(size_t index, const std::string& key) const {
    return recipe_.state_name(recipe_.parameters()[index] + "." + key);
  }

  Value state(const std::string& name, const Type& type) {
    return record_source(graph_, "state", name, type, {}, train_.loc);
  }

  /// Records the learning-rate schedule, and a store of the learning rate to a state that users can
  /// read.
  void schedule(Value counter) {
    const OpDef& def = *find_schedule(train_.attrs.get<std::string>("schedule"));
    Values operands = {counter};
    if (def.inputs->size() > 1) operands.push_back(plateau_factor());
    scheduled_ =
        record(graph_, *def.name, operands, schedule_settings(train_.attrs), train_.loc)[0];
    const Value old = state(recipe_.state_name(kLearningRate), scheduled_.type());
    stores_.emplace_back(old.op()->symbol, if_applied(scheduled_, old));
  }

  Value plateau_factor() {
    const Type type{f64, {kPlateauElements}, {}};
    const Value plateau = record_source(graph_, "state", recipe_.state_name(kPlateau), type,
                                        {{"init", std::string("ones")}}, train_.loc);
    const Value factor = slice(plateau, {.starts = {kFactor}, .stops = {kFactor + 1}}, train_.loc);
    return reshape(factor, Shape{}, train_.loc);
  }

  /// The learning rate times `scale`, in `dtype`, the compute dtype of the optimizer op.
  Value rate(DType dtype, double scale) {
    Value& known = rates_[{dtype, scale}];
    if (known) return known;
    if (scheduled_) return known = cast(scale == 1 ? scheduled_ : scheduled_ * scale, dtype);
    const double lr = train_.attrs.get<double>("lr") * scale;
    return known = fill(graph_, {.type = Type{dtype, {}, {}}, .value = lr}, train_.loc);
  }

  /// Attributes of the optimizer op for one parameter: the recipe's settings `given`, but with the
  /// weight decay of the parameter. `param_attrs`: the attributes of the parameter.
  Attrs settings_of(const OpDef& optimizer, const Attrs& given, const Attrs& param_attrs) const {
    Attrs settings = complete_attrs(optimizer, given, train_.loc);
    const bool decays =
        std::ranges::any_of(*optimizer.attrs, [](const auto& a) { return a.name == kDecay; });
    if (!decays) return settings;
    const double scale =
        param_attrs.get_or(kDecay, true) ? param_attrs.get_or(kDecayScale, 1.0) : 0;
    settings.set(kDecay, settings.get<double>(kDecay) * scale);
    return settings;
  }

  /// Whether OptimizerTraits::non_matrix_optimizer updates parameter `whole`. Muon, for example,
  /// updates only matrices.
  static bool uses_non_matrix_optimizer(const OpDef& optimizer, Value whole) {
    return !optimizer.optimizer->non_matrix_optimizer.empty() && whole.shape().rank() != 2;
  }

  const ParameterUpdate& prepared(size_t index, const OpDef& recorded, Value counter) {
    ParameterUpdate& made = prepared_[index];
    if (!made.operands.empty()) return made;
    const std::string& name = recipe_.parameters()[index];
    const Value whole = graph_.find_indexed("param", name)->result();
    const bool other = uses_non_matrix_optimizer(recorded, whole);
    const OpDef& optimizer =
        other ? *find_optimizer(recorded.optimizer->non_matrix_optimizer) : recorded;
    const Value rows = recipe_.row_indices(index);
    const Value param = rows ? rows_of(whole, rows) : own_shard_of(index, whole);
    const Attrs& param_attrs = whole.op()->attrs;
    const double scale = other ? non_matrix_lr_scale(recorded, settings_) : 1.0;
    const Value lr =
        rate(compute_dtype(param.dtype()), scale * param_attrs.get_or("lr_scale", 1.0));
    ir::ScopedRecording as(graph_, recipe_.recording(name));
    const Value gradient =
        rows ? recipe_.gradient(index) : own_shard_of(index, recipe_.gradient(index));
    // Replaces the gradient by 0 if the step is skipped. All ops of the update then depend on the
    // step predicate, so that one kernel can compute them.
    made.operands = {param, if_applied(gradient, scalar_like(gradient, 0)), lr, counter};
    made.variables = {whole, {}, {}, {}};
    made.optimizer = &optimizer;
    made.settings = settings_of(
        optimizer, other ? non_matrix_settings(recorded, settings_) : settings_, param_attrs);
    for (const std::string& key : optimizer_states(optimizer, made.settings)) {
      const Value variable = state_of(index, key, rows ? whole.type() : param.type());
      made.variables.push_back(variable);
      made.operands.push_back(rows ? rows_of(variable, rows) : variable);
    }
    if (!optimizer.optimizer->tensors.empty()) record_tensors(index, made);
    return made;
  }

  /// Records the tensors that the optimizer computes from the whole parameter, and appends them to
  /// the operands of the update.
  void record_tensors(size_t index, ParameterUpdate& update) {
    ParameterOnRanks parameter(*this, index, update);
    Values tensors;
    for (const OptimizerTensor& t : update.optimizer->optimizer->tensors) {
      tensors.push_back(t.record(parameter));
    }
    update.operands.insert(update.operands.end(), tensors.begin(), tensors.end());
    update.variables.resize(update.operands.size());
  }

  bool is_bounded(const std::string& parameter) const {
    return graph_.find_indexed("param", parameter)->attrs.get_or("max_norm", 0.0) != 0;
  }

  /// Throws UserError if a parameter is sparse. `only_bounded`: checks only parameters with a
  /// `max_norm`.
  void reject_sparse_parameters(const std::string& reader, bool only_bounded = false) const {
    for (size_t i = 0; i < recipe_.parameters().size(); ++i) {
      if (!recipe_.row_indices(i) || (only_bounded && !is_bounded(recipe_.parameters()[i])))
        continue;
      throw UserError(train_.loc, reader + " needs whole parameters, but '" +
                                      recipe_.parameters()[i] + "' is sparse");
    }
  }

  /// Records the norms that the optimizer reads: norms over whole parameters, not over shards. One
  /// collective sums the squares of all shards.
  void record_norms(const OpDef& optimizer, Value counter) {
    Values squares;
    for (size_t i = 0; i < recipe_.parameters().size(); ++i) {
      const std::string& name = recipe_.parameters()[i];
      const ParameterUpdate& of = prepared(i, optimizer, counter);
      ir::ScopedRecording as(graph_, recipe_.recording(name));
      for (const OptimizerScalar& s : optimizer.optimizer->scalars) {
        if (s.norm_of.empty()) continue;
        const Value tensor = s.norm_of == "param"  ? of.operands[0]
                             : s.norm_of == "grad" ? of.operands[1]
                                                   : record(graph_, s.norm_of, of.operands,
                                                            of.settings, train_.loc)[0];
        squares.push_back(internal::sum_squares(tensor));
      }
    }
    for (const Value sum : recipe_.all_reduce_sums(squares)) norms_.push_back(sqrt(sum));
  }

  /// Records the op OptimizerScalar::sequence, which computes the next element of a scalar sequence
  /// from the previous element. Stores the element in a state, for the next step.
  Value sequence_element(const OptimizerScalar& scalar, Value counter) {
    Value& known = sequences_[scalar.name];
    if (known) return known;
    ir::ScopedRecording as(graph_, recipe_.recording());
    const Value old = record_source(graph_, "state", recipe_.state_name(scalar.name),
                                    Type{f64, {}, {}}, {{"init", std::string("ones")}}, train_.loc);
    Attrs settings;
    for (const AttrDef& a : *op_named(scalar.sequence, train_.loc).attrs) {
      if (const Attr* value = settings_.find(a.name)) settings.set(a.name, *value);
    }
    known = record(graph_, scalar.sequence, {old, counter}, settings, train_.loc)[0];
    stores_.emplace_back(old.op()->symbol, if_applied(known, old));
    return known;
  }

  void update(size_t index, const OpDef& recorded, Value counter) {
    const ParameterUpdate& of = prepared(index, recorded, counter);
    const OpDef& optimizer = *of.optimizer;
    const std::string& name = recipe_.parameters()[index];
    const Value whole = of.variables[0], param = of.operands[0];
    const Value rows = recipe_.row_indices(index);
    Values operands = of.operands;
    for (const OptimizerScalar& s : optimizer.optimizer->scalars) {
      operands.push_back(s.norm_of.empty() ? sequence_element(s, counter) : norms_[next_norm_++]);
    }
    ir::ScopedRecording as(graph_, recipe_.recording(name));
    const Values results = record(graph_, *optimizer.name, operands, of.settings, train_.loc);
    for (auto [result, operand] : std::get<Updates>(*optimizer.effects).results) {
      if (static_cast<size_t>(operand) >= of.variables.size())
        break;  // the settings disable this state and all later ones
      const Value old = operands.at(static_cast<size_t>(operand));
      Value value = results.at(static_cast<size_t>(result));
      if (old == param) value = looked_ahead(index, param, value, counter);
      if (old == whole) value = bounded(whole, value);
      const Value updated = if_applied(value, old);
      const Value variable = of.variables.at(static_cast<size_t>(operand));
      if (rows) {
        const Value table = internal::index_copy(variable, rows, updated);
        stores_.emplace_back(variable.op()->symbol, table);
        if (variable == whole) update_average(name, table, counter);
      } else if (old == param && recipe_.is_sharded()) {
        updated_shards_[recipe_.bucket_index(index)].emplace_back(
            name, padded_to_whole(whole, index, updated));
      } else {
        stores_.emplace_back(old.op()->symbol, updated);
        if (old == param) update_average(name, updated, counter);
      }
    }
  }

  /// Returns `updated`, the new value of `parameter`, with the L2 norm of the weights of each
  /// output limited to the parameter's `max_norm`, like torch.renorm.
  Value bounded(Value parameter, Value updated) const {
    constexpr double kRoundingOfNorm = 1e-7;
    const double limit = parameter.op()->attrs.get_or("max_norm", 0.0);
    if (limit == 0) return updated;
    Ints axes;
    const int64_t rank = updated.shape().rank(), output = rank == 1 ? -1 : rank == 2 ? 1 : 0;
    for (int64_t d = 0; d < rank; ++d) {
      if (d != output) axes.push_back(d);
    }
    const Value squares = square(cast(updated, compute_dtype(updated.dtype())));
    const Value norm = sqrt(sum(squares, {.axes = axes, .keep_dims = true}));
    const Value scale = where(greater(norm, scalar_like(norm, limit)),
                              limit / (norm + kRoundingOfNorm), scalar_like(norm, 1));
    return updated * cast(scale, updated.dtype());
  }

  Value updated_average(Value old, Value updated, Value counter) const {
    const Attrs& attrs = train_.attrs;
    if (weight_averaging_of(train_) == WeightAveraging::swa) {
      return internal::swa_update(old, updated, counter,
                                  {.start = attrs.get<int64_t>("swa_start"),
                                   .every = attrs.get_or("swa_every", int64_t{1})},
                                  train_.loc);
    }
    return internal::ema_update(old, updated, counter, {.decay = attrs.get<double>("ema_decay")},
                                train_.loc);
  }

  /// Returns the value of a parameter after lookahead, or `updated` if the recipe has no lookahead.
  /// `param` is the old value of this process's shard; `updated` is the optimizer's new value of
  /// the shard.
  Value looked_ahead(size_t index, Value param, Value updated, Value counter) {
    const auto every = train_.attrs.get_or("lookahead_every", int64_t{0});
    if (every == 0) return updated;
    const Value slow = state_of(index, "slow", param.type());
    const Values weights = internal::lookahead(
        slow, param, updated, counter,
        {.every = every, .alpha = train_.attrs.get_or("lookahead_alpha", 0.5)}, train_.loc);
    stores_.emplace_back(slow.op()->symbol, if_applied(weights[1], slow));
    return weights[0];
  }

  /// Updates the average of parameter `name`, whose new value is `updated`. The average is not
  /// sharded, so that each process can use it for evaluation.
  void update_average(const std::string& name, Value updated, Value counter) {
    if (!averages_parameters(train_)) return;
    const std::string variable = average_name(train_, name);
    const Value old = state(variable, Type{compute_dtype(updated.dtype()), updated.shape(), {}});
    stores_.emplace_back(variable, if_applied(updated_average(old, updated, counter), old));
  }

  /// Gathers the rows of `table` at the row indices `rows`. Row index -1 gives zeros. Does not
  /// check the row indices, because a check would have to precede the collectives that gather the
  /// row indices.
  Value rows_of(Value table, Value rows) const {
    return internal::gather_rows(table, rows, train_.loc);
  }

  /// Returns this process's shard of `whole` as a 1-d tensor, or `whole` if the optimizer is not
  /// sharded.
  Value own_shard_of(size_t index, Value whole) const {
    if (!recipe_.is_sharded()) return whole;
    const BucketShard part = recipe_.own_shard(index);
    const Value flat = reshape(whole, Shape{whole.shape().numel().size}, train_.loc);
    return slice(flat, {.starts = {part.begin}, .stops = {part.end}}, train_.loc);
  }

  /// Pads `part`, this process's shard of `whole`, with zeros to the shape of `whole`.
  Value padded_to_whole(Value whole, size_t index, Value part) const {
    const BucketShard range = recipe_.own_shard(index);
    const int64_t elements = whole.shape().numel().size;
    const Value flat =
        pad(part, {.low = {range.begin}, .high = {elements - range.end}}, train_.loc);
    return reshape(flat, whole.shape(), train_.loc);
  }

  /// Declares optimizer state `key`, such as "m", of parameter `index`.
  Value state_of(size_t index, const std::string& key, const Type& type) {
    const std::string& parameter = recipe_.parameters()[index];
    Attrs attrs;
    if (recipe_.is_sharded()) {
      std::vector<int64_t> whole;
      for (const Dim& d : graph_.find_indexed("param", parameter)->result().shape())
        whole.push_back(d.size);
      attrs = {{kFullShape, whole}, {kShardBounds, recipe_.shard_bounds(index)}};
    }
    return record_source(graph_, "state", state_name(index, key), type, attrs, train_.loc);
  }

  /// All-gathers the new values of the parameters. Each process has updated only its shard.
  void all_gather_parameters(Value counter) {
    for (auto& [bucket, parts] : updated_shards_) {
      std::ranges::reverse(parts);  // the same operand order as in reduce_scatter
      Values updated;
      for (const auto& [name, value] : parts) updated.push_back(value);
      const Values whole = record_collective(graph_, "all_gather", updated, train_.loc);
      for (size_t i = 0; i < whole.size(); ++i) {
        const std::string& name = parts[i].first;
        const Value parameter = graph_.find_indexed("param", name)->result();
        const Value updated = if_applied(bounded(parameter, whole[i]), whole[i]);
        stores_.emplace_back(name, updated);
        update_average(name, updated, counter);
      }
    }
  }

  Value if_applied(Value value, Value otherwise) const {
    const Value step_predicate = recipe_.step_predicate();
    return step_predicate ? where(step_predicate, value, otherwise, train_.loc) : value;
  }

  /// Makes a skipped step keep the old values of recorded states, such as running statistics.
  /// States that depend on the step predicate, such as the loss scale, are always updated.
  void predicate_recorded_stores() {
    const std::set<const ir::Op*> deciding = dependents(recipe_.step_predicate());
    const size_t count = graph_.ops.size();
    const auto variables = variables_by_name(graph_);
    for (size_t i = move_stores_last(graph_); i < count; ++i) {
      ir::Op& store = *graph_.ops[i];
      Value& value = store.operands.at(0);
      if (deciding.contains(value.op())) continue;
      value = if_applied(value, variables.at(store.symbol)->result());
    }
    move_stores_last(graph_);
  }

  /// The op that produces `v`, and all ops that depend on that op.
  std::set<const ir::Op*> dependents(Value v) const {
    std::set<const ir::Op*> found = {v.op()};
    for (const auto& op : graph_.ops) {
      const auto depends = [&](Value operand) { return found.contains(operand.op()); };
      if (std::ranges::any_of(op->operands, depends)) found.insert(op.get());
    }
    return found;
  }

  /// The random state for the next step. `rng` is (seed, number of runs, index of the first
  /// sample); the number of runs increases by 1.
  Value next_random_state(Value rng) const {
    const auto part = [&](int64_t i) {
      return slice(rng, {.starts = {i}, .stops = {i + 1}}, train_.loc);
    };
    return concat({part(0), part(1) + 1, part(2)}, {.axis = 0}, train_.loc);
  }

  ir::Graph& graph_;
  const Recipe& recipe_;
  const ir::Op& train_;
  Attrs settings_;   ///< attributes of the optimizer ops
  Value scheduled_;  ///< scheduled learning rate, f64[]; null if the rate is constant
  std::map<std::pair<DType, double>, Value> rates_;  ///< (dtype, lr_scale) -> learning rate
  std::map<size_t, ParameterUpdate> prepared_;       ///< parameter index -> operands and attributes
  std::map<std::string, Value> sequences_;  ///< scalar name -> result of sequence_element()
  Values norms_;          ///< the norms of each parameter, in the order of OptimizerTraits::scalars
  size_t next_norm_ = 0;  ///< index of the next norm that update() reads
  std::vector<std::pair<std::string, Value>> stores_;
  /// Bucket index -> (parameter name, new value of this process's shard, zero-padded to the shape
  /// of the parameter). The last bucket comes first, because it holds the first parameters, which
  /// the next forward pass reads first.
  std::map<int64_t, std::vector<std::pair<std::string, Value>>, std::greater<>> updated_shards_;
};

bool run_expand_optimizer(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* train = find_directive(graph);
  if (train == nullptr) return false;
  Expansion(graph, Recipe(*train)).run();
  graph.erase_if([&](const ir::Op& op) { return &op == train; });
  return true;
}

}  // namespace

Pass expand_optimizer_pass() {
  return {.name = "expand_optimizer",
          .doc = "Expands the train directive into optimizer ops, their states and stores.",
          .needs = {"gradients"},
          .provides = {"updates"},
          .run = run_expand_optimizer};
}

}  // namespace fluid
