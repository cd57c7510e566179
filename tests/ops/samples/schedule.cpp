// Schedules of the learning rate against their formulas in double.

#include <cmath>
#include <numbers>

#include "tests/support/op_harness.h"

namespace fluid::testing::schedule_samples {
namespace {

OpTest schedule_test(const std::string& op, const std::vector<Attrs>& settings,
                     const std::function<double(const Attrs&, double update)>& rate) {
  OpTest t;
  t.op = op;
  for (const Attrs& attrs : settings) {
    for (const int64_t update : {0, 1, 4, 5, 9, 10, 37, 1000}) {
      const Tensor counter = Tensor::of<int64_t>({}, std::vector<int64_t>{update});
      t.samples.push_back({{counter}, attrs, {}});
    }
  }
  t.reference = [rate](const Sample& s) {
    const double expected = rate(s.attrs, s.inputs[0].item());
    return std::vector{Tensor::of<double>({}, std::vector<double>{expected})};
  };
  return t;
}

OpTest step_test() {
  OpTest t = schedule_test("step_schedule",
                           {{{"lr", 0.5}, {"every", int64_t{5}}, {"factor", 0.25}},
                            {{"lr", 0.1}, {"every", int64_t{1}}, {"factor", 0.99}}},
                           [](const Attrs& a, double update) {
                             const auto every = static_cast<double>(a.get<int64_t>("every"));
                             return a.get<double>("lr") *
                                    std::pow(a.get<double>("factor"), std::floor(update / every));
                           });
  t.bad = {{{{i64, {}, {}}},
            {{"lr", 0.5}, {"every", int64_t{0}}},
            "step_schedule: attribute 'every' must be above 0"},
           {{{f32, {}, {}}},
            {{"lr", 0.5}, {"every", int64_t{1}}},
            "step_schedule: the update counter must be an i64 scalar, got f32[]"}};
  return t;
}

/// PyTorch's LinearLR up, then CosineAnnealingLR, in their closed forms.
double cosine(const Attrs& a, double update) {
  const double lr = a.get<double>("lr"), end = a.get_or("end", 0.0);
  const auto warmup = static_cast<double>(a.get_or("warmup", int64_t{0}));
  const auto steps = static_cast<double>(a.get<int64_t>("steps"));
  if (update < warmup) return lr * (update + 1) / warmup;
  const double done = std::min(1.0, (update - warmup) / (steps - warmup));
  return end + (lr - end) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

OpTest cosine_test() {
  OpTest t =
      schedule_test("cosine_schedule",
                    {{{"lr", 0.5}, {"steps", int64_t{40}}},
                     {{"lr", 0.5}, {"steps", int64_t{40}}, {"warmup", int64_t{5}}, {"end", 0.125}}},
                    cosine);
  t.bad = {{{{i64, {}, {}}},
            {{"lr", 0.5}, {"steps", int64_t{5}}, {"warmup", int64_t{5}}},
            "cosine_schedule: attribute 'steps' must be above 'warmup', 5"},
           {{{i64, {}, {}}},
            {{"lr", 0.5}, {"steps", int64_t{5}}, {"warmup", int64_t{-1}}},
            "cosine_schedule: attribute 'warmup' must not be negative"}};
  return t;
}

OpTest plateau_test() {
  OpTest t;
  t.op = "plateau_schedule";
  for (const double factor : {1.0, 0.1, 0.0625}) {
    t.samples.push_back({{Tensor::of<int64_t>({}, std::vector<int64_t>{7}),
                          Tensor::of<double>({}, std::vector<double>{factor})},
                         {{"lr", 0.3}},
                         {}});
  }
  t.reference = [](const Sample& s) {
    const double rate = s.attrs.get<double>("lr") * s.inputs[1].item();
    return std::vector{Tensor::of<double>({}, std::vector<double>{rate})};
  };
  const std::vector<Type> operands = {{i64, {}, {}}, {f64, {}, {}}};
  t.bad = {{operands,
            {{"lr", 0.5}, {"factor", 1.0}},
            "plateau_schedule: attribute 'factor' must lie in [0.0, 1.0), not be 1.0"},
           {operands,
            {{"lr", 0.5}, {"patience", int64_t{-1}}},
            "plateau_schedule: attribute 'patience' must not be negative"},
           {{{i64, {}, {}}, {f64, {2}, {}}},
            {{"lr", 0.5}},
            "plateau_schedule: the factor must be a float scalar, got f64[2]"}};
  return t;
}

OpTest manual_test() {
  OpTest t;
  t.op = "manual_schedule";
  for (const double factor : {1.0, 0.1, 250.0}) {
    t.samples.push_back({{Tensor::of<int64_t>({}, std::vector<int64_t>{7}),
                          Tensor::of<double>({}, std::vector<double>{factor})},
                         {{"lr", 0.3}},
                         {}});
  }
  t.reference = [](const Sample& s) {
    const double rate = s.attrs.get<double>("lr") * s.inputs[1].item();
    return std::vector{Tensor::of<double>({}, std::vector<double>{rate})};
  };
  t.bad = {{{{i64, {}, {}}, {f64, {2}, {}}},
            {{"lr", 0.5}},
            "manual_schedule: the factor must be a float scalar, got f64[2]"}};
  return t;
}

const AddOpTest kPlateau(plateau_test());
const AddOpTest kManualSchedule(manual_test());
const AddOpTest kStep(step_test());
const AddOpTest kCosine(cosine_test());

}  // namespace
}  // namespace fluid::testing::schedule_samples
