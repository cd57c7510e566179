#pragma once

// Functions that all layers share, for scopes, parameters and checks. Not part of the public API.

#include <optional>
#include <string>

#include "frontend/init.h"
#include "frontend/parameter.h"
#include "ir/graph.h"

namespace fluid {

/// Returns "scope.name", or `name` if `scope` is empty.
std::string scoped_name(const std::string& scope, const std::string& name);

/// Returns a copy of graph.recording with the scope of a layer. The last component of the scope is
/// `name` or, if `name` is empty, the first unused name among <kind>0, <kind>1, ...
ir::Graph::Recording layer_recording(const ir::Graph& graph, const std::string& kind,
                                     const std::string& name);

/// Returns the graph of `x`. Throws UserError, which names the layer, if `x` is a
/// default-constructed Value.
ir::Graph& input_graph(Value x, const char* layer, const Loc& loc);

/// Throws UserError(loc, message) unless `condition` is true.
void require(bool condition, const Loc& loc, const std::string& message);

/// Throws UserError unless `type` is a float type and `fits` is true. `subject`, such as
/// "linear: the input", and `form`, the accepted shape, name the mistake in the message.
void require_float_type(const Type& type, bool fits, const std::string& subject,
                        const std::string& form, const Loc& loc);

/// Throws UserError unless `p` lies in [0, 1]. `subject` names the option in the message.
void require_probability(double p, const std::string& subject, const Loc& loc);

Init default_weight();
Init default_bias(int64_t fan_in);

/// Creates the parameters of one layer. If the user supplies a Value for a parameter, uses the
/// Value and creates no parameter.
class LayerParameters {
 public:
  /// `kind` names the layer in messages.
  template <class Layer>
  LayerParameters(ir::Graph& graph, const char* kind, const Layer& layer, const Loc& loc)
      : graph_(graph),
        kind_(kind),
        options_{.trainable = layer.trainable,
                 .lr_scale = layer.lr_scale,
                 .weight_decay = layer.weight_decay},
        loc_(loc) {
    if constexpr (requires { layer.sparse; }) options_.sparse = layer.sparse;
    if constexpr (requires { layer.max_norm; }) {
      options_.l1 = layer.l1;
      options_.l2 = layer.l2;
      options_.max_norm = layer.max_norm;
    }
  }

  /// Returns `given` if it is set. Otherwise adds a parameter `name` of type `type` to the graph
  /// and returns the parameter. `role`, such as "weight", names the parameter in messages.
  Value get(const char* role, const std::string& name, const Type& type,
            const std::optional<Value>& given, const std::optional<Init>& init,
            const Init& fallback);

  /// Throws UserError if ParameterOptions are set but get() has added no parameter to which they
  /// could apply.
  void check_options() const;

 private:
  Value checked(const char* role, const Type& type, Value given, bool has_init) const;

  ir::Graph& graph_;
  const char* kind_;
  ParameterOptions options_;
  const Loc& loc_;
  bool added_ = false;
};

}  // namespace fluid
