#include "frontend/init.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/files/npy.h"
#include "ir/error.h"

namespace fluid {
namespace {

Attr text(const char* s) { return std::string(s); }

}  // namespace

Init Init::constant(double value) { return Init({{"init", text("constant")}, {"value", value}}); }
Init Init::uniform(double low, double high) {
  return Init({{"init", text("uniform")}, {"low", low}, {"high", high}});
}
Init Init::normal(double mean, double stddev) {
  return Init({{"init", text("normal")}, {"mean", mean}, {"std", stddev}});
}
Init Init::xavier_uniform(double gain) {
  return Init({{"init", text("xavier_uniform")}, {"gain", gain}});
}
Init Init::xavier_normal(double gain) {
  return Init({{"init", text("xavier_normal")}, {"gain", gain}});
}
Init Init::kaiming_uniform(double slope, FanMode mode) {
  return Init({{"init", text("kaiming_uniform")}, {"slope", slope}}).with_mode(mode);
}
Init Init::kaiming_normal(double slope, FanMode mode) {
  return Init({{"init", text("kaiming_normal")}, {"slope", slope}}).with_mode(mode);
}
Init Init::truncated_normal(double mean, double stddev, double low, double high) {
  return Init({{"init", text("truncated_normal")},
               {"mean", mean},
               {"std", stddev},
               {"low", low},
               {"high", high}});
}
Init Init::orthogonal(double gain) { return Init({{"init", text("orthogonal")}, {"gain", gain}}); }
Init Init::dirac(int64_t groups) { return Init({{"init", text("dirac")}, {"groups", groups}}); }

Init Init::array(const Tensor& values) {
  if (!is_float(values.dtype())) {
    throw UserError("Init::array: the values are " + values.str() + ", not floats");
  }
  std::vector<double> numbers(static_cast<size_t>(values.numel()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = values.at(static_cast<int64_t>(i));
  return Init({{"init", text("array")}, {"values", std::move(numbers)}});
}
Init Init::npy(const std::string& path) {
  const Tensor values = read_npy(path);
  Init init = array(values);
  init.file_ = path;
  init.file_shape_ = Shape(values.shape().begin(), values.shape().end());
  return init;
}
Init Init::named(const std::string& name, const Attrs& settings) {
  Attrs attrs = settings;
  attrs.set("init", name);
  return Init(std::move(attrs));
}

void Init::check_shape(const std::string& name, const Type& type, const Loc& loc) const {
  if (file_.empty() || file_shape_ == type.shape) return;
  throw UserError(loc, "'" + file_ + "' has shape " + file_shape_.str() + ", but parameter '" +
                           name + "' has shape " + type.shape.str());
}

Init Init::with_mode(FanMode mode) && {
  if (mode == FanMode::out) attrs_.set("mode", text("fan_out"));
  return std::move(*this);
}

double calculate_gain(const std::string& nonlinearity, double slope) {
  const std::map<std::string, double> gains = {
      {"linear", 1},     {"conv", 1},       {"sigmoid", 1},
      {"tanh", 5.0 / 3}, {"relu", M_SQRT2}, {"leaky_relu", std::sqrt(2 / (1 + slope * slope))},
      {"selu", 0.75}};
  const auto found = gains.find(nonlinearity);
  if (found != gains.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, gain] : gains) names.push_back(name);
  throw UserError("calculate_gain: unknown nonlinearity '" + nonlinearity + "'" +
                  did_you_mean(nonlinearity, names));
}

}  // namespace fluid
