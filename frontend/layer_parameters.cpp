#include "frontend/layer_parameters.h"

#include <algorithm>
#include <cmath>

#include "ir/error.h"
#include "ir/text.h"
#include "ops/record.h"

namespace fluid {
namespace {

/// Returns the first scope among <kind>0, <kind>1, ... that no op in the graph uses.
std::string fresh_name(const ir::Graph& graph, const std::string& kind) {
  for (int n = 0;; ++n) {
    std::string name = scoped_name(graph.recording.scope, kind + std::to_string(n));
    const bool taken =
        std::ranges::any_of(graph.ops, [&](const auto& op) { return op->scope == name; });
    if (!taken) return name;
  }
}

}  // namespace

std::string scoped_name(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : scope + "." + name;
}

ir::Graph::Recording layer_recording(const ir::Graph& graph, const std::string& kind,
                                     const std::string& name) {
  ir::Graph::Recording recording = graph.recording;
  recording.scope = name.empty() ? fresh_name(graph, kind) : scoped_name(recording.scope, name);
  return recording;
}

ir::Graph& input_graph(Value x, const char* layer, const Loc& loc) {
  if (!x) throw UserError(loc, std::string(layer) + ": the input is an empty value");
  return *x.op()->graph();
}

void require(bool condition, const Loc& loc, const std::string& message) {
  if (!condition) throw UserError(loc, message);
}

void require_float_type(const Type& type, bool fits, const std::string& subject,
                        const std::string& form, const Loc& loc) {
  require(is_float(type.dtype) && fits, loc,
          subject + " is " + type.str() + ", not a float " + form);
}

void require_probability(double p, const std::string& subject, const Loc& loc) {
  require(p >= 0 && p <= 1, loc,
          subject + " must lie between 0 and 1, not be " + ir::float_text(p));
}

Init default_weight() { return Init::kaiming_uniform(std::sqrt(5.0)); }

Init default_bias(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1)));
  return Init::uniform(-bound, bound);
}

Value LayerParameters::get(const char* role, const std::string& name, const Type& type,
                           const std::optional<Value>& given, const std::optional<Init>& init,
                           const Init& fallback) {
  if (given) return checked(role, type, *given, init.has_value());
  added_ = true;
  ParameterOptions options = options_;
  options.dtype = type.dtype;
  if (std::string_view(role) != "weight") options.l1 = options.l2 = options.max_norm = 0;
  return record_parameter(graph_, name, type.shape, init.value_or(fallback), options, loc_);
}

void LayerParameters::check_options() const {
  const bool set = !options_.trainable || options_.lr_scale != 1 || !options_.weight_decay ||
                   options_.sparse || options_.l1 != 0 || options_.l2 != 0 ||
                   options_.max_norm != 0;
  require(added_ || !set, loc_,
          std::string(kind_) +
              ": options of parameters, such as trainable and lr_scale, have no effect on given "
              "parameters; set them where the parameters are made");
}

Value LayerParameters::checked(const char* role, const Type& type, Value given,
                               bool has_init) const {
  const std::string subject = std::string(kind_) + ": the " + role;
  require(static_cast<bool>(given), loc_, subject + " is an empty value");
  require(given.op()->graph() == &graph_, loc_, subject + " belongs to another program");
  require(given.type() == type, loc_,
          subject + " is " + given.type().str() + ", but the layer needs " + type.str());
  require(!has_init, loc_, subject + " is given, so its initialiser has no effect");
  return given;
}

}  // namespace fluid
