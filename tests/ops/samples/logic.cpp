#include "tests/support/op_harness.h"

namespace fluid::testing::logic_samples {
namespace {

/// Floats that are often equal, so that ties are tested.
Tensor coarse(std::vector<int64_t> shape, int salt) {
  Tensor t = random_tensor(std::move(shape), 0, 3, salt);
  for (double& x : t.as<double>()) x = static_cast<double>(static_cast<int>(x));
  return t;
}

OpTest comparison(std::string op, std::function<bool(double, double)> f) {
  OpTest t;
  t.op = std::move(op);
  t.samples = binary_samples();
  t.samples.push_back({{coarse({4, 5}, 0), coarse({5}, 1)}, {}, {}});
  t.samples.push_back({{coarse({7}, 0).cast(i64), coarse({7}, 1).cast(i64)}, {}, {}});
  t.samples.push_back({{bool_tensor({7}), bool_tensor({7}, 1)}, {}, {}});
  t.reference = [f](const Sample& s) {
    const auto at = [&](const std::vector<double>& x) { return f(x[0], x[1]); };
    return std::vector{map_elements(s.inputs, at, boolean)};
  };
  return t;
}

OpTest logical(std::string op, std::function<bool(bool, bool)> f) {
  OpTest t;
  t.op = std::move(op);
  t.samples = {{{bool_tensor({3, 5}), bool_tensor({5}, 1)}, {}, {}},
               {{bool_tensor({0}), bool_tensor({1})}, {}, {}},
               {{bool_tensor({37}), bool_tensor({37}, 1)}, {}, {0, 0}}};
  t.reference = [f](const Sample& s) {
    const auto at = [&](const std::vector<double>& x) { return f(x[0] != 0, x[1] != 0); };
    return std::vector{map_elements(s.inputs, at, boolean)};
  };
  t.bad = {{{{f32, {}, {}}, {boolean, {}, {}}},
            {},
            t.op + ": operand 0 must be a bool tensor, not f32[]"}};
  return t;
}

OpTest not_test() {
  OpTest t;
  t.op = "logical_not";
  t.samples = {{{bool_tensor({37})}, {}, {}}, {{bool_tensor({0})}, {}, {}}};
  t.reference = [](const Sample& s) {
    return std::vector{map_elements(
        s.inputs, [](const auto& x) { return x[0] == 0; }, boolean)};
  };
  return t;
}

OpTest where_test() {
  OpTest t;
  t.op = "where";
  t.samples = {
      {{bool_tensor({3, 5}), random_tensor({3, 5}), random_tensor({3, 5}, -1, 1, 1)}, {}, {}},
      {{bool_tensor({3, 1}), random_tensor({}), random_tensor({5})}, {}, {}},
      {{bool_tensor({0}), random_tensor({0}), random_tensor({1})}, {}, {}},
      {{bool_tensor({7}), random_tensor({7, 1}), random_tensor({1, 7})}, {}, {}},
      {{bool_tensor({37}), random_tensor({37}), random_tensor({1})}, {}, {0, 0}}};
  t.reference = [](const Sample& s) {
    return std::vector{
        map_elements(s.inputs, [](const auto& x) { return x[0] != 0 ? x[1] : x[2]; })};
  };
  t.bad = {{{{f32, {}, {}}, {f32, {}, {}}, {f32, {}, {}}},
            {},
            "where: operand 0 must be a bool tensor, not f32[]"},
           {{{boolean, {}, {}}, {f32, {}, {}}, {f64, {}, {}}},
            {},
            "where: operands of different dtypes, bool[], f32[] and f64[]: cast one of them"}};
  return t;
}

OpTest cast_test(DType to) {
  OpTest t;
  t.op = "cast";
  t.samples = unary_samples(0, 100);
  for (Sample& s : t.samples) s.attrs = {{"to", Type{to, {}, {}}}};
  t.reference = [to](const Sample& s) {
    return std::vector{map_elements(
        s.inputs, [](const auto& x) { return x[0]; }, to)};
  };
  t.gradient = is_float(to);
  return t;
}

const AddOpTest kEqual(comparison("equal",
                                  [](double a, double b) { return !(a < b) && !(b < a); }));
const AddOpTest kNotEqual(comparison("not_equal",
                                     [](double a, double b) { return a < b || b < a; }));
const AddOpTest kLess(comparison("less", [](double a, double b) { return b - a > 0; }));
const AddOpTest kLessEqual(comparison("less_equal", [](double a, double b) { return b - a >= 0; }));
const AddOpTest kGreater(comparison("greater", [](double a, double b) { return a - b > 0; }));
const AddOpTest kGreaterEqual(comparison("greater_equal",
                                         [](double a, double b) { return a - b >= 0; }));
const AddOpTest kAnd(logical("logical_and", [](bool a, bool b) { return a ? b : false; }));
const AddOpTest kXor(logical("logical_xor", [](bool a, bool b) { return a ? !b : b; }));
const AddOpTest kOr(logical("logical_or", [](bool a, bool b) { return a ? true : b; }));
const AddOpTest kNot(not_test());
const AddOpTest kWhere(where_test());
const AddOpTest kCastSame(cast_test(f64));
const AddOpTest kCastInt(cast_test(i64));
const AddOpTest kCastByte(cast_test(u8));
const AddOpTest kCastSignedByte(cast_test(i8));
const AddOpTest kCastBool(cast_test(boolean));

}  // namespace
}  // namespace fluid::testing::logic_samples
