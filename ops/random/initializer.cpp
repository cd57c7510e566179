#include "ops/random/initializer.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ir/near.h"
#include "ops/arguments.h"
#include "ops/lora_attributes.h"
#include "ops/operators.h"
#include "ops/random/orthogonal.h"
#include "ops/record.h"
#include "ops/source/kept_gradient.h"
#include "ops/source/training_settings.h"

namespace fluid {
namespace {

/// Returns the value of a numeric attribute, which may be a float or an int.
double number(const Attrs& attrs, std::string_view name, double fallback, const Loc& loc) {
  const Attr* attr = attrs.find(name);
  if (attr == nullptr) return fallback;
  if (const auto* value = std::get_if<double>(attr)) return *value;
  if (const auto* value = std::get_if<int64_t>(attr)) return static_cast<double>(*value);
  throw UserError(loc, "initialiser setting '" + std::string(name) + "' must be a number, not a " +
                           std::string(attr_type_name(*attr)));
}

std::string text(const Attrs& attrs, std::string_view name, const char* fallback, const Loc& loc) {
  const Attr* attr = attrs.find(name);
  if (attr == nullptr) return fallback;
  if (const auto* value = std::get_if<std::string>(attr)) return *value;
  throw UserError(loc, "initialiser setting '" + std::string(name) +
                           "' must be of kind string, not " + std::string(attr_type_name(*attr)));
}

constexpr const char* kInit = "init";
constexpr const char* kInitialValues = "values";

struct InitializerContext {
  ir::Graph& graph;
  Value seed;
  const std::string& name;
  const Type& type;
  const Attrs& attrs;
  const Loc& loc;
  std::vector<std::string>& settings;  ///< names of the attributes that the initialiser reads

  double number(std::string_view setting, double fallback) const {
    settings.emplace_back(setting);
    return fluid::number(attrs, setting, fallback, loc);
  }
  Value constant(double value) const {
    return record(graph, "fill", {}, {{"type", type}, {"value", value}}, loc)[0];
  }
  Value uniform(double low, double high) const {
    return record(graph, "uniform", {seed},
                  {{"type", type}, {"low", low}, {"high", high}, {"stream", stream()}}, loc)[0];
  }
  Value normal(double mean, double deviation) const {
    return record(graph, "normal", {seed},
                  {{"type", type}, {"mean", mean}, {"std", deviation}, {"stream", stream()}},
                  loc)[0];
  }
  Value uniform_of(double deviation) const {
    const double bound = std::sqrt(3.0) * deviation;
    return uniform(-bound, bound);
  }
  double xavier() const {
    const Fan fan = calculate_fan(type.shape, loc);
    return number("gain", 1) * std::sqrt(2.0 / static_cast<double>(fan.in + fan.out));
  }
  double kaiming() const {
    const Fan fan = calculate_fan(type.shape, loc);
    settings.emplace_back("mode");
    const auto mode = text(attrs, "mode", "fan_in", loc);
    if (mode != "fan_in" && mode != "fan_out") {
      throw UserError(loc, "initialiser setting 'mode' of '" + name +
                               "' must be fan_in or fan_out, not '" + mode + "'");
    }
    const double slope = number("slope", 0);
    return std::sqrt(2.0 / (1 + slope * slope) /
                     static_cast<double>(mode == "fan_in" ? fan.in : fan.out));
  }
  Value truncated_normal() const {
    const double mean = number("mean", 0), deviation = number("std", 1);
    return record(graph, "truncated_normal", {seed},
                  {{"type", type},
                   {"mean", mean},
                   {"std", deviation},
                   {"low", number("low", mean - 2 * deviation)},
                   {"high", number("high", mean + 2 * deviation)},
                   {"stream", stream()}},
                  loc)[0];
  }
  Value dirac() const {
    const auto groups = static_cast<int64_t>(number("groups", 1));
    return record(graph, "dirac", {}, {{"type", type}, {"groups", groups}}, loc)[0];
  }
  /// Computed in f32 or f64 from standard normal numbers, as a matrix of type.shape[0] rows.
  Value orthogonal() const {
    if (type.shape.rank() < 2) {
      throw UserError(loc, "initialiser 'orthogonal' of '" + name +
                               "' needs two or more dimensions, not " + type.shape.str());
    }
    const Type wide = {compute_dtype(type.dtype), type.shape, {}};
    const Value z = record(graph, "normal", {seed}, {{"type", wide}, {"stream", stream()}}, loc)[0];
    const Value q = orthogonal_factor(reshape(z, Shape{type.shape[0], -1}, loc), loc);
    return cast(reshape(q, type.shape, loc) * number("gain", 1), type.dtype, loc);
  }
  /// Returns zeros, which the host replaces by initial_values().
  Value array() const {
    settings.emplace_back(kInitialValues);
    const auto* values = attrs.find(kInitialValues);
    const auto* numbers = values == nullptr ? nullptr : std::get_if<std::vector<double>>(values);
    const auto count = numbers == nullptr ? size_t{0} : numbers->size();
    if (static_cast<int64_t>(count) != type.shape.numel().size) {
      throw UserError(loc, "initialiser 'array' of '" + name + "' has " + std::to_string(count) +
                               " values for " + type.str());
    }
    return constant(0);
  }
  int64_t stream() const {
    return static_cast<int64_t>(XXH3_64bits(name.data(), name.size()) >> 1);
  }
};

struct Initializer {
  std::string_view name;
  Value (*record)(const InitializerContext&);
};

constexpr const char* kZeros = "zeros";  ///< name of the default initialiser
constexpr const char* kArray = "array";

constexpr Initializer kInitializers[] = {
    {kZeros, [](const InitializerContext& r) { return r.constant(0); }},
    {"ones", [](const InitializerContext& r) { return r.constant(1); }},
    {"constant", [](const InitializerContext& r) { return r.constant(r.number("value", 0)); }},
    {"uniform",
     [](const InitializerContext& r) {
       return r.uniform(r.number("low", 0), r.number("high", 1));
     }},
    {"normal",
     [](const InitializerContext& r) { return r.normal(r.number("mean", 0), r.number("std", 1)); }},
    {"xavier_uniform", [](const InitializerContext& r) { return r.uniform_of(r.xavier()); }},
    {"xavier_normal", [](const InitializerContext& r) { return r.normal(0, r.xavier()); }},
    {"kaiming_uniform", [](const InitializerContext& r) { return r.uniform_of(r.kaiming()); }},
    {"kaiming_normal", [](const InitializerContext& r) { return r.normal(0, r.kaiming()); }},
    {"truncated_normal", [](const InitializerContext& r) { return r.truncated_normal(); }},
    {"orthogonal", [](const InitializerContext& r) { return r.orthogonal(); }},
    {"dirac", [](const InitializerContext& r) { return r.dirac(); }},
    {kArray, [](const InitializerContext& r) { return r.array(); }},
};

/// Attributes of a variable that belong neither to its initialiser nor to kTrainingSettings.
constexpr const char* kVariableAttributes[] = {"sparse",   kKeepGradient,     kLoraOf,
                                               kLoraScale, kScratchAttribute, kCacheAttribute,
                                               kFullShape, kShardBounds};

/// Whether attribute `name` of a variable selects its initialiser or is a setting of it.
bool is_initializer_attribute(std::string_view name) {
  return !is_pass_attribute(name) &&
         std::ranges::find(kVariableAttributes, name) == std::end(kVariableAttributes) &&
         std::ranges::find(kTrainingSettings, name) == std::end(kTrainingSettings);
}

/// Throws UserError for an attribute that neither initialiser `init` nor a compiler pass uses.
void require_known(const InitializerContext& context, const std::string& init) {
  std::vector<std::string> known = context.settings;
  known.emplace_back(kInit);
  for (const auto& [name, attr] : context.attrs) {
    if (!is_initializer_attribute(name) || std::ranges::find(known, name) != known.end()) continue;
    known.insert(known.end(), std::begin(kVariableAttributes), std::end(kVariableAttributes));
    known.insert(known.end(), std::begin(kTrainingSettings), std::end(kTrainingSettings));
    throw UserError(context.loc, "initialiser '" + init + "' of '" + context.name +
                                     "' has no setting '" + name + "'" + did_you_mean(name, known));
  }
}

}  // namespace

Fan calculate_fan(const Shape& shape, const Loc& loc) {
  if (shape.rank() < 2 || shape.has_batch()) {
    throw UserError(
        loc, "this initialiser needs a weight of two or more dimensions, not " + shape.str());
  }
  if (shape.rank() == 2) return {shape[0].size, shape[1].size};
  int64_t taps = 1;
  for (size_t d = 2; d < shape.size(); ++d) taps *= shape[d].size;
  return {shape[1].size * taps, shape[0].size * taps};
}

Value record_initializer(ir::Graph& graph, Value seed, const std::string& name, const Type& type,
                         const Attrs& attrs, const Loc& loc) {
  const std::string init = text(attrs, kInit, kZeros, loc);
  std::vector<std::string> known, settings;
  for (const Initializer& i : kInitializers) {
    known.emplace_back(i.name);
    if (i.name != init) continue;
    const InitializerContext context{graph, seed, name, type, attrs, loc, settings};
    const Value initial = i.record(context);
    require_known(context, init);
    return initial;
  }
  throw UserError(loc, "'" + name + "' asks for an unknown initialiser '" + init + "'" +
                           suggest_names(init, known));
}

std::optional<Tensor> initial_values(const Type& type, const Attrs& attrs) {
  if (attrs.get_or(kInit, std::string()) != kArray) return std::nullopt;
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.size);
  const auto& values = attrs.get<std::vector<double>>(kInitialValues);
  return Tensor::of<double>(shape, values);
}

bool is_zero_initialized(const Attrs& attrs, const Loc& loc) {
  return text(attrs, kInit, kZeros, loc) == kZeros;
}

void check_initializer(const std::string& name, const Type& type, const Attrs& attrs,
                       const Loc& loc) {
  ir::Program scratch("initial");
  const Value seed = scratch.main().append("data", {}, {}, {Type{i64, {}, {}}})->result();
  record_initializer(scratch.main(), seed, name, type, attrs, loc);
}

void set_initializer(ir::Op& param, const Attrs& init, const Loc& loc) {
  Attrs attrs = init;
  for (const auto& [name, attr] : param.attrs) {
    if (!is_initializer_attribute(name)) attrs.set(name, attr);
  }
  check_initializer(param.symbol, param.result().type(), attrs, loc);
  param.attrs = std::move(attrs);
}

Type infer_random(const InferCtx& c) {
  const Type& type = c.attr<Type>("type");
  c.require(is_float(type.dtype), "draws floats, not " + type.str());
  c.require(c.in(0) == Type{i64, {}, {}}, "the seed must be an i64 scalar, got " + c.in(0).str());
  return type;
}

}  // namespace fluid
