// Schedules of the learning rate against their formulas in double.

#include <cmath>
#include <numbers>

#include "tests/support/op_harness.h"

namespace fluid::testing::schedule_samples {
namespace {

using Rate = std::function<double(const Attrs&, double update)>;

/// PyTorch's LinearLR or ConstantLR, then `rate`.
double warm_rate(const Attrs& a, double update, const Rate& rate) {
  const auto warmup = static_cast<double>(a.get_or("warmup", int64_t{0}));
  if (update >= warmup) return rate(a, update - warmup);
  const double start = a.get_or("warmup_start", 0.0);
  if (a.get_or("constant_warmup", false)) return start * rate(a, 0);
  return (start + (1 - start) * (update + 1) / warmup) * rate(a, 0);
}

double number(const Attrs& a, std::string_view name, double fallback) {
  const Attr* value = a.find(name);
  if (value == nullptr) return fallback;
  const auto* integer = std::get_if<int64_t>(value);
  return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(*value);
}

/// Number of updates after the warm-up until update `name`.
double left(const Attrs& a, std::string_view name) {
  return number(a, name, 0) - number(a, "warmup", 0);
}

Tensor counter_of(int64_t update) { return Tensor::of<int64_t>({}, std::vector<int64_t>{update}); }

OpTest schedule_test(const std::string& op, const std::vector<Attrs>& settings, const Rate& rate,
                     const std::vector<std::pair<Attrs, std::string>>& bad = {}) {
  OpTest t;
  t.op = op;
  for (Attrs attrs : settings) {
    attrs.set("lr", 0.5);
    for (const int64_t update : {0, 1, 4, 5, 9, 10, 37, 1000}) {
      t.samples.push_back({{counter_of(update)}, attrs, {}});
    }
  }
  t.reference = [rate](const Sample& s) {
    const double expected = warm_rate(s.attrs, s.inputs[0].item(), rate);
    return std::vector{Tensor::of<double>({}, std::vector<double>{expected})};
  };
  for (const auto& [attrs, message] : bad) {
    Attrs complete = attrs;
    complete.set("lr", 0.5);
    t.bad.push_back({{{i64, {}, {}}}, complete, op + ": " + message});
  }
  return t;
}

double lr_of(const Attrs& a) { return a.get<double>("lr"); }

double between(double from, double to, double x) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

const Attrs kWarm = {{"warmup", int64_t{4}}, {"warmup_start", 0.25}};

OpTest constant_test() {
  return schedule_test("constant_schedule",
                       {kWarm,
                        {{"warmup", int64_t{5}}},
                        {{"warmup", int64_t{5}}, {"warmup_start", 0.5}, {"constant_warmup", true}}},
                       [](const Attrs& a, double) { return lr_of(a); },
                       {{{{"warmup", int64_t{-1}}}, "attribute 'warmup' must be 0 or more, not -1"},
                        {{{"warmup", int64_t{1}}, {"warmup_start", -0.5}},
                         "attribute 'warmup_start' must be 0.0 or more, not -0.5"},
                        {{{"warmup", int64_t{1}}, {"constant_warmup", true}},
                         "attribute 'constant_warmup' needs a 'warmup_start' above 0"}});
}

OpTest step_test() {
  OpTest t = schedule_test(
      "step_schedule",
      {{{"every", int64_t{5}}, {"factor", 0.25}}, {{"every", int64_t{1}}, {"factor", 0.99}}},
      [](const Attrs& a, double update) {
        return lr_of(a) *
               std::pow(number(a, "factor", 0), std::floor(update / number(a, "every", 0)));
      },
      {{{{"every", int64_t{0}}}, "attribute 'every' must be 1 or more, not 0"}});
  t.bad.push_back({{{f32, {}, {}}},
                   {{"lr", 0.5}, {"every", int64_t{1}}},
                   "step_schedule: the update counter must be an i64 scalar, got f32[]"});
  return t;
}

OpTest multistep_test() {
  return schedule_test(
      "multistep_schedule",
      {{{"milestones", std::vector<int64_t>{5, 10}}, {"factor", 0.25}},
       {{"milestones", std::vector<int64_t>{9}}, {"warmup", int64_t{4}}}},
      [](const Attrs& a, double update) {
        double rate = lr_of(a);
        for (const int64_t m : a.get<std::vector<int64_t>>("milestones")) {
          if (update + number(a, "warmup", 0) >= static_cast<double>(m)) {
            rate *= number(a, "factor", 0.1);
          }
        }
        return rate;
      },
      {{{{"milestones", std::vector<int64_t>{3, 3}}},
        "attribute 'milestones' must rise from above 'warmup', 0, but 3 follows 3"}});
}

OpTest piecewise_test() {
  return schedule_test(
      "piecewise_schedule",
      {{{"boundaries", std::vector<int64_t>{1, 9}},
        {"values", std::vector<double>{0.25, 2, 0.125}}}},
      [](const Attrs& a, double update) {
        const auto& values = a.get<std::vector<double>>("values");
        return update < 1 ? values[0] : update < 9 ? values[1] : values[2];
      },
      {{{{"boundaries", std::vector<int64_t>{1}}, {"values", std::vector<double>{0.5}}},
        "needs 2 'values' for its 'boundaries', not 1"},
       {{{"boundaries", std::vector<int64_t>{}}, {"values", std::vector<double>{-1}}},
        "attribute 'values' must be 0.0 or more, not -1.0"}});
}

OpTest exponential_test() {
  return schedule_test(
      "exponential_schedule",
      {{{"factor", 0.9}}, {{"factor", 0.5}, {"every", int64_t{7}}, {"warmup", int64_t{3}}}},
      [](const Attrs& a, double update) {
        return lr_of(a) * std::pow(number(a, "factor", 0), update / number(a, "every", 1));
      });
}

OpTest polynomial_test() {
  return schedule_test(
      "polynomial_schedule",
      {{{"steps", int64_t{40}}, {"power", 2.0}, {"end", 0.125}},
       {{"steps", int64_t{20}}, {"warmup", int64_t{5}}}},
      [](const Attrs& a, double update) {
        const double steps = left(a, "steps"), end = number(a, "end", 0);
        return end + (lr_of(a) - end) *
                         std::pow(1 - std::min(1.0, update / steps), number(a, "power", 1));
      },
      {{{{"steps", int64_t{0}}}, "attribute 'steps' must be above 'warmup', 0, not 0"}});
}

OpTest linear_test() {
  return schedule_test(
      "linear_schedule",
      {{{"steps", int64_t{20}}, {"end", 0.125}}, {{"steps", int64_t{20}}, {"warmup", int64_t{5}}}},
      [](const Attrs& a, double update) {
        const double done = std::min(1.0, update / left(a, "steps"));
        return lr_of(a) + (number(a, "end", 0) - lr_of(a)) * done;
      });
}

OpTest cosine_test() {
  return schedule_test(
      "cosine_schedule",
      {{{"steps", int64_t{40}}}, {{"steps", int64_t{40}}, {"warmup", int64_t{5}}, {"end", 0.125}}},
      [](const Attrs& a, double update) {
        return between(lr_of(a), number(a, "end", 0), std::min(1.0, update / left(a, "steps")));
      },
      {{{{"steps", int64_t{5}}, {"warmup", int64_t{5}}},
        "attribute 'steps' must be above 'warmup', 5, not 5"}});
}

OpTest cosine_restarts_test() {
  return schedule_test("cosine_restarts_schedule",
                       {{{"period", int64_t{5}}, {"end", 0.125}},
                        {{"period", int64_t{3}}, {"growth", int64_t{2}}, {"warmup", int64_t{1}}}},
                       [](const Attrs& a, double update) {
                         double period = number(a, "period", 0);
                         for (; update >= period; period *= number(a, "growth", 1))
                           update -= period;
                         return between(lr_of(a), number(a, "end", 0), update / period);
                       },
                       {{{{"period", int64_t{0}}}, "attribute 'period' must be 1 or more, not 0"}});
}

OpTest one_cycle_test() {
  return schedule_test(
      "one_cycle_schedule",
      {{{"steps", int64_t{21}}, {"pct_start", 0.25}},
       {{"steps", int64_t{26}}, {"pct_start", 0.25}, {"warmup", int64_t{5}}}},
      [](const Attrs& a, double update) {
        const double last = left(a, "steps") - 1, peak = 0.25 * (last + 1) - 1;
        const double first = lr_of(a) / 25;
        if (update <= peak) return between(first, lr_of(a), update / peak);
        return between(lr_of(a), first / 1e4, std::min(1.0, (update - peak) / (last - peak)));
      },
      {{{{"steps", int64_t{10}}, {"pct_start", 0.1}},
        "attribute 'pct_start' gives the rise no update: 'pct_start' times 'steps' must be above "
        "1"},
       {{{"steps", int64_t{10}}, {"pct_start", 0.75}, {"three_phase", true}},
        "attribute 'pct_start' leaves no update for the last phase"},
       {{{"steps", int64_t{10}}, {"pct_start", 1.0}},
        "attribute 'pct_start' must lie in [0.0, 1.0), not 1.0"},
       {{{"steps", int64_t{10}}, {"div_factor", 0.5}},
        "attribute 'div_factor' must be 1.0 or more, not 0.5"}});
}

/// The warm-up is part of the formula.
OpTest noam_test() {
  OpTest t = schedule_test("noam_schedule", {{{"d_model", int64_t{64}}, {"warmup", int64_t{8}}}},
                           [](const Attrs&, double) { return 0.0; },
                           {{{{"d_model", int64_t{0}}, {"warmup", int64_t{8}}},
                             "attribute 'd_model' must be 1 or more, not 0"}});
  t.reference = [](const Sample& s) {
    const double update = s.inputs[0].item() + 1, warmup = number(s.attrs, "warmup", 0);
    const double rate = lr_of(s.attrs) / std::sqrt(number(s.attrs, "d_model", 0)) *
                        std::min(1 / std::sqrt(update), update * std::pow(warmup, -1.5));
    return std::vector{Tensor::of<double>({}, std::vector<double>{rate})};
  };
  return t;
}

OpTest inverse_time_test() {
  return schedule_test(
      "inverse_time_schedule",
      {{{"decay", 0.25}},
       {{"decay", 0.5}, {"every", int64_t{4}}, {"staircase", true}, {"warmup", int64_t{3}}}},
      [](const Attrs& a, double update) {
        const double times = update / number(a, "every", 1);
        const double t = a.get_or("staircase", false) ? std::floor(times) : times;
        return lr_of(a) / (1 + number(a, "decay", 0) * t);
      });
}

/// A schedule that the host adjusts: lr times operand 1.
OpTest factor_test(const std::string& op, const std::vector<double>& factors) {
  OpTest t;
  t.op = op;
  for (const double factor : factors) {
    t.samples.push_back(
        {{counter_of(7), Tensor::of<double>({}, std::vector<double>{factor})}, {{"lr", 0.3}}, {}});
  }
  t.reference = [](const Sample& s) {
    const double rate = lr_of(s.attrs) * s.inputs[1].item();
    return std::vector{Tensor::of<double>({}, std::vector<double>{rate})};
  };
  t.bad = {{{{i64, {}, {}}, {f64, {2}, {}}},
            {{"lr", 0.5}},
            op + ": the factor must be a float scalar, got f64[2]"}};
  return t;
}

OpTest plateau_test() {
  OpTest t = factor_test("plateau_schedule", {1.0, 0.1, 0.0625});
  const std::vector<Type> operands = {{i64, {}, {}}, {f64, {}, {}}};
  t.bad.push_back({operands,
                   {{"lr", 0.5}, {"factor", 1.0}},
                   "plateau_schedule: attribute 'factor' must lie in [0.0, 1.0), not 1.0"});
  t.bad.push_back({operands,
                   {{"lr", 0.5}, {"patience", int64_t{-1}}},
                   "plateau_schedule: attribute 'patience' must be 0 or more, not -1"});
  return t;
}

const AddOpTest kPlateau(plateau_test());
const AddOpTest kManualSchedule(factor_test("manual_schedule", {1.0, 0.1, 250.0}));
const AddOpTest kConstant(constant_test());
const AddOpTest kStep(step_test());
const AddOpTest kMultistep(multistep_test());
const AddOpTest kPiecewise(piecewise_test());
const AddOpTest kExponential(exponential_test());
const AddOpTest kPolynomial(polynomial_test());
const AddOpTest kLinear(linear_test());
const AddOpTest kCosine(cosine_test());
const AddOpTest kCosineRestarts(cosine_restarts_test());
const AddOpTest kOneCycle(one_cycle_test());
const AddOpTest kNoam(noam_test());
const AddOpTest kInverseTime(inverse_time_test());

}  // namespace
}  // namespace fluid::testing::schedule_samples
