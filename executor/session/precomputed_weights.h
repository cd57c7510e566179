#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "executor/host/weight_cache.h"
#include "executor/session/step_cache.h"
#include "executor/session/steps_in_flight.h"
#include "ir/tensor.h"

namespace fluid {

/// Keeps the precomputed weights (passes/precompute_weights.h) of a session equal to their
/// functions of the variables: maps them from the WeightCache, or computes them.
///
/// A cache entry holds the weights that one step computes, and the variables that the step reads,
/// if they lie in WeightStep::range. Mapping an entry so replaces the arena's copies of both. The
/// weights' pages are those of the page cache, shared with other processes; variables that no other
/// step reads take no memory until the user reads them. Written pages become private.
///
/// A session that trains computes its weights. So does a session whose variables changed after the
/// weights were stored or searched once, because each change would leave an entry.
class PrecomputedWeights {
 public:
  PrecomputedWeights(StepCache& steps, StepsInFlight& in_flight)
      : steps_(steps), in_flight_(in_flight), cache_(steps.options().kernel_cache_dir) {}

  void add(const std::vector<WeightStep>& steps);
  /// Values that will be assigned to variables, by name.
  using GivenValues = std::map<std::string, Tensor>;
  /// Maps the weights that the cache has for the variables' values, or for those in `given`. The
  /// caller must assign the values in `given`, except to variables for which is_mapped() is true:
  /// those have their values.
  void map_cached(const GivenValues& given);
  bool is_mapped(const Variable& variable) const;
  /// Must be called before each predict step. Maps or computes the weights that are stale.
  void refresh();
  /// Must be called before variables change.
  void mark_stale();
  void mark_stale(const Variable& variable);

 private:
  struct Weights {
    WeightStep computed_by;
    std::set<std::string> reads;  ///< names of the variables that the step reads
    bool fresh = false;
    bool mapped = false;    ///< whether the range is mapped from a cache entry
    bool searched = false;  ///< whether the cache was searched
    std::string key;        ///< key of the entry to write; empty: none
  };
  bool may_be_cached(const Weights& weights) const;
  void search(Weights& weights, const GivenValues& given);
  bool map(Weights& weights);
  void compute(Weights& weights);
  void mark_stale(Weights& weights);
  std::string text_of_value(const Variable& variable, const GivenValues& given) const;
  std::string key_of(const Weights& weights, const GivenValues& given) const;

  StepCache& steps_;
  StepsInFlight& in_flight_;
  WeightCache cache_;
  std::vector<Weights> weights_;
};

}  // namespace fluid
