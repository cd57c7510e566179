#include "passes/recipe.h"

#include <algorithm>

#include "ops/operators.h"
#include "ops/optim/recipes.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "passes/collective_order.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr const char* kPredicated = "predicated";
constexpr const char* kBucket = "bucket";
constexpr const char* kRank = "rank";
constexpr const char* kWaits = "waits";
constexpr const char* kSparse = "sparse";

}  // namespace

bool skips_on_nonfinite_loss(const Options& options) {
  return options.check_finite && !(options.amp && options.amp->scales_loss());
}

WeightAveraging weight_averaging_of(const ir::Op& train) {
  if (train.attrs.get_or("ema_decay", 0.0) != 0) return WeightAveraging::ema;
  return train.attrs.get_or("swa_start", int64_t{0}) != 0 ? WeightAveraging::swa
                                                          : WeightAveraging::none;
}

bool averages_parameters(const ir::Graph& graph) {
  return std::ranges::any_of(recipes_of(graph),
                             [](const ir::Op* train) { return averages_parameters(*train); });
}

std::string average_name(const ir::Op& train, std::string_view parameter) {
  const char* kind = weight_averaging_of(train) == WeightAveraging::swa ? ".swa" : ".ema";
  return recipe_state(recipe_name(train), std::string(parameter) + kind);
}

std::string Recipe::state_name(std::string_view state) const {
  return recipe_state(recipe_name(directive_), state);
}

const std::vector<std::string>& Recipe::parameters() const {
  return directive_.attrs.get<std::vector<std::string>>("parameters");
}

void Recipe::scale_backward_seed(const std::function<Value()>& factor) const {
  ir::Graph& graph = *directive_.graph();
  const ir::Op* seed = backward_seed().op();
  rewrite_ops(graph, [&](ir::Op& op) {
    if (&op != seed) return Values();
    const Value unscaled = record(graph, op.name, op.operands, op.attrs, op.loc)[0];
    return Values{unscaled * cast(factor(), unscaled.dtype())};
  });
}

int64_t Recipe::last_collective_before_gradient(size_t i) const {
  const auto waits = directive_.attrs.get_or(kWaits, std::vector<int64_t>());
  return waits.empty() ? -1 : waits[i];
}

void Recipe::set_last_collectives(const std::vector<int64_t>& order_numbers) const {
  directive_.attrs.set(kWaits, order_numbers);
}

void Recipe::replace_gradients(const std::function<Value(Value)>& replace) const {
  for (size_t i = 0; i < parameters().size(); ++i) {
    ir::ScopedRecording as(*directive_.graph(), recording(parameters()[i]));
    gradient(i) = replace(gradient(i));
  }
}

std::optional<size_t> Recipe::row_indices_operand(size_t i) const {
  const auto sparse = directive_.attrs.get_or(kSparse, std::vector<std::string>());
  const auto found = std::ranges::find(sparse, parameters()[i]);
  if (found == sparse.end()) return std::nullopt;
  return 2 + parameters().size() + static_cast<size_t>(found - sparse.begin());
}

Value Recipe::row_indices(size_t i) const {
  const std::optional<size_t> operand = row_indices_operand(i);
  return operand ? directive_.operands.at(*operand) : Value();
}

void Recipe::replace_row_indices(const std::function<Value(size_t i, Value rows)>& replace) const {
  for (size_t i = parameters().size(); i-- > 0;) {
    const std::optional<size_t> operand = row_indices_operand(i);
    if (!operand) continue;
    ir::ScopedRecording as(*directive_.graph(), recording(parameters()[i]));
    directive_.operands[*operand] = replace(i, directive_.operands[*operand]);
  }
}

void Recipe::set_row_indices(const std::vector<std::string>& names, const Values& rows) const {
  check(!step_predicate() && !has_sparse_gradients(), "row numbers precede the step predicate");
  directive_.operands.insert(directive_.operands.end(), rows.begin(), rows.end());
  directive_.attrs.set(kSparse, names);
}

bool Recipe::has_sparse_gradients() const { return directive_.attrs.has(kSparse); }

void Recipe::set_shards(const std::vector<std::vector<int64_t>>& bounds,
                        const std::vector<int64_t>& bucket_of, int64_t rank) const {
  std::vector<int64_t> all;
  for (const auto& of_parameter : bounds) {
    all.insert(all.end(), of_parameter.begin(), of_parameter.end());
  }
  directive_.attrs.set(kShardBounds, all);
  directive_.attrs.set(kBucket, bucket_of);
  directive_.attrs.set(kRank, rank);
}

bool Recipe::is_sharded() const {
  return !directive_.attrs.get_or(kShardBounds, std::vector<int64_t>()).empty();
}

std::vector<int64_t> Recipe::shard_bounds(size_t i) const {
  const auto& all = directive_.attrs.get<std::vector<int64_t>>(kShardBounds);
  const size_t each = all.size() / parameters().size();
  const auto first = all.begin() + static_cast<ptrdiff_t>(i * each);
  return {first, first + static_cast<ptrdiff_t>(each)};
}

BucketShard Recipe::own_shard(size_t i) const {
  const std::vector<int64_t> bounds = this->shard_bounds(i);
  const auto rank = static_cast<size_t>(directive_.attrs.get<int64_t>(kRank));
  return {bounds[rank], bounds[rank + 1]};
}

int64_t Recipe::bucket_index(size_t i) const {
  return directive_.attrs.get<std::vector<int64_t>>(kBucket)[i];
}

Values Recipe::all_reduce_sums(const Values& sums) const {
  if (!is_sharded() || sums.empty()) return sums;
  ir::Graph& graph = *directive_.graph();
  Values parts, totals;
  for (const Value v : sums) parts.push_back(cast(v, f64));
  const Values added = record_collective(graph, "all_reduce", parts, directive_.loc);
  for (size_t i = 0; i < sums.size(); ++i) totals.push_back(cast(added[i], sums[i].dtype()));
  return totals;
}

Value Recipe::step_predicate() const {
  return directive_.attrs.get_or(kPredicated, false) ? directive_.operands.back() : Value();
}

void Recipe::set_step_predicate(Value step_predicate) const {
  check(!this->step_predicate(), "the step is predicated twice");
  directive_.operands.push_back(step_predicate);
  directive_.attrs.set(kPredicated, true);
}

}  // namespace fluid
