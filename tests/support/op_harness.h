#pragma once

// From samples of an op and an independent reference, all checks of its definition.
//
//   OpTest relu_test() {
//     OpTest t = unary_test("relu", [](double x) { return x > 0 ? x : 0; });
//     t.bad = {{{{i64, {3}, {}}}, {}, "relu: the operand must be a float tensor, not i64[3]"}};
//     return t;
//   }
//   const AddOpTest kRelu(relu_test());

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "ops/table.h"
#include "tests/support/kernel_runner.h"

namespace fluid::testing {

/// One use of an op. Float inputs are f64: the harness casts them, and float Type attributes, to
/// each dtype that it tests.
struct Sample {
  std::vector<Tensor> inputs;
  Attrs attrs;
  std::vector<int> batch_dims;  ///< an input's dimension that is the batch; -1 or left out: none
};

/// A wrong use and its message.
struct BadUse {
  std::vector<Type> inputs;
  Attrs attrs;
  std::string message;
};

struct OpTest {
  std::string op;
  std::vector<Sample> samples;
  /// The results for f64 inputs, by other means than the op's own definition. Float results f64,
  /// others of any integer dtype.
  std::function<std::vector<Tensor>(const Sample&)> reference;
  std::vector<BadUse> bad;
  double slack = 1;         ///< widens the tolerances of generated kernels
  bool gradient = true;     ///< finite differences at the samples (off where they have kinks)
  bool own_memory = false;  ///< no result may lie in an operand's place, although it would be safe
};

/// All tests of the program, in the order of registration.
std::vector<OpTest>& op_tests();
struct AddOpTest {
  explicit AddOpTest(OpTest test) { op_tests().push_back(std::move(test)); }
};

/// Faults of an op, one line each. `def` is the definition in the table, or one broken on purpose.
using Faults = std::vector<std::string>;
Faults check_forward(const OpTest& test, const OpDef& def);   ///< types and values
Faults check_gradient(const OpTest& test, const OpDef& def);  ///< against finite differences
Faults check_cost(const OpTest& test, const OpDef& def);      ///< against the lowered form's size
Faults check_in_place(const OpTest& test, const OpDef& def);  ///< against the lowered form's reads
/// Whether the generated kernel of sample number `sample` is tested in `dtype` on `processor`. A
/// full run tests all dtypes. Other runs test fewer, because a dtype changes only loads, stores,
/// casts and the number of lanes. On the CPU they test each sample in f32. Two of three samples,
/// the first among them, are also tested in another float dtype and in an integer dtype, and on the
/// emulated GPU in one dtype of each kind. On a GPU each sample is. The dtypes take turns, which
/// begin differently for each op.
bool is_tested(const OpTest& test, size_t sample, DType dtype, Processor processor);
/// Generated code in f64, f32, f16, bf16.
Faults check_kernels(const OpTest& test, Processor processor = Processor::cpu);
/// In every integer dtype that infer takes.
Faults check_integer_kernels(const OpTest& test, Processor processor = Processor::cpu);
Faults check_text(const OpTest& test);  ///< print, parse, print
Faults check_bad_uses(const OpTest& test);

/// The sample recorded in a program of its own: sources "0", "1", ...; outputs of the same names.
struct Built {
  std::unique_ptr<ir::Program> program;
  std::map<std::string, Tensor> sources;
  ir::Op* op = nullptr;
  int64_t batch = 1;
};
Built build(const OpTest& test, const Sample& sample, DType dtype = f64);
/// Like build(), with integers that `dtype`, an integer or bool, can hold; null if the op takes
/// none.
std::optional<Built> build_of_integers(const OpTest& test, const Sample& sample, DType dtype);

// Samples and references that many tests share.

using Extents = std::vector<int64_t>;

/// Element `i` of an f64 tensor.
inline double& at(Tensor& t, int64_t i) { return t.as<double>()[static_cast<size_t>(i)]; }

/// Uniform in [low, high), from a fixed seed that depends on the shape and `salt`.
Tensor random_tensor(std::vector<int64_t> shape, double low = -2, double high = 2, int salt = 0);
Tensor bool_tensor(std::vector<int64_t> shape, int salt = 0);
/// Samples of one operand with scalars, extents 0, 1 and primes, and the batch.
std::vector<Sample> unary_samples(double low = -2, double high = 2);
/// Broadcasting of either side, sizes 0, 1 and primes, and the batch.
std::vector<Sample> binary_samples(double low = -2, double high = 2);
int64_t numel_of(const Extents& shape);
/// The result of `shape` whose element at `index` is the operand's at `from(index)`; `fallback`
/// where that gives an empty list.
Tensor gathered(const Tensor& x, const Extents& shape,
                const std::function<Extents(const Extents&)>& from, double fallback = 0);
/// f(x) or f(a, b) of broadcast elements; `dtype` is the result's.
Tensor map_elements(const std::vector<Tensor>& inputs,
                    const std::function<double(const std::vector<double>&)>& f, DType dtype = f64);
OpTest unary_test(std::string op, std::function<double(double)> f, double low = -2,
                  double high = 2);
OpTest binary_test(std::string op, std::function<double(double, double)> f, double low = -2,
                   double high = 2);

}  // namespace fluid::testing
