#pragma once

#include <string>
#include <utility>

#include "ir/attr.h"
#include "ir/loc.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace fluid {

/// The fan of a layer: inputs per output (fan-in), or outputs per input (fan-out).
enum class FanMode { in, out };

/// Returns the initialiser gain for the nonlinearity after a layer, like
/// torch.nn.init.calculate_gain. `nonlinearity`: linear, conv, sigmoid, tanh, relu, leaky_relu
/// (with `slope`) or selu. Throws UserError for others.
double calculate_gain(const std::string& nonlinearity, double slope = 0.01);

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
  /// slope^2) fan), where `slope` is the negative slope of the leaky ReLU after the layer, and
  /// `mode` selects fan-in or fan-out.
  static Init kaiming_uniform(double slope = 0, FanMode mode = FanMode::in);
  static Init kaiming_normal(double slope = 0, FanMode mode = FanMode::in);
  /// The normal distribution truncated to [low, high], like torch.nn.init.trunc_normal_. The bounds
  /// must lie within 5 `stddev` of `mean`.
  static Init truncated_normal(double mean, double stddev, double low, double high);
  /// The normal distribution with mean 0, truncated to [-2 `stddev`, 2 `stddev`].
  static Init truncated_normal(double stddev) {
    return truncated_normal(0, stddev, -2 * stddev, 2 * stddev);
  }
  /// A random semi-orthogonal matrix [first extent, product of the other extents] times `gain`,
  /// like torch.nn.init.orthogonal_. See Saxe et al., "Exact solutions to the nonlinear dynamics of
  /// learning in deep linear neural networks", ICLR 2014.
  static Init orthogonal(double gain = 1);
  /// Weights of a convolution that is the identity in each group, like torch.nn.init.dirac_.
  static Init dirac(int64_t groups = 1);
  /// The values of a float tensor, which the program stores as f64. Throws UserError for other
  /// dtypes.
  static Init array(const Tensor& values);
  /// The values in a .npy file, whose array has the shape of the parameter. Reads the file
  /// immediately.
  static Init npy(const std::string& path);
  /// The initialiser called `name` in program files, such as "normal" with the setting `std`. The
  /// `param` op validates the name and the settings when it is recorded.
  static Init named(const std::string& name, const Attrs& settings);

  const Attrs& attrs() const { return attrs_; }
  /// Throws UserError if the initialiser is a .npy file, and the shape of its array differs from
  /// the shape of the parameter `name` of type `type`.
  void check_shape(const std::string& name, const Type& type, const Loc& loc) const;

 private:
  explicit Init(Attrs attrs) : attrs_(std::move(attrs)) {}
  Init with_mode(FanMode mode) &&;
  Attrs attrs_;
  std::string file_ = {};  ///< the .npy file of the values; empty: none
  Shape file_shape_ = {};  ///< shape of the array in file_
};

}  // namespace fluid
