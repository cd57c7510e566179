#pragma once

#include "ir/attr.h"

namespace fluid {

/// The initialiser of a parameter. Stored as attributes of the `param` op: `init` names the
/// initialiser (ops/random), the other attributes are its settings. Fan-in and fan-out are computed
/// from the shape of the parameter, [out, in, kh, kw] or [in, out].
class Init {
 public:
  static Init constant(double value);
  static Init zeros() { return constant(0); }
  static Init uniform(double low, double high);
  static Init normal(double mean, double stddev);
  /// Initialiser of Glorot and Bengio, "Understanding the difficulty of training deep feedforward
  /// neural networks", AISTATS 2010. The variance is 2 gain^2 / (fan-in + fan-out).
  static Init xavier_uniform(double gain = 1);
  static Init xavier_normal(double gain = 1);
  /// Initialiser of He et al., "Delving deep into rectifiers", ICCV 2015. The variance is 2 / ((1 +
  /// slope^2) fan-in), where `slope` is the negative slope of the leaky ReLU after the layer.
  static Init kaiming_uniform(double slope = 0);
  static Init kaiming_normal(double slope = 0);

  const Attrs& attrs() const { return attrs_; }

 private:
  explicit Init(Attrs attrs) : attrs_(std::move(attrs)) {}
  Attrs attrs_;
};

}  // namespace fluid
