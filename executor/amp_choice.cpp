#include "executor/amp_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "codegen/backend.h"
#include "codegen/compiler.h"
#include "codegen/object_cache.h"
#include "executor/bytes_text.h"
#include "executor/cpu/cpu_target.h"
#include "executor/executor.h"
#include "executor/prepared_step.h"
#include "ir/print.h"
#include "ir/stopwatch.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

constexpr double kMargin = 0.95;
constexpr int kWarmUp = 2, kLeast = 5, kMost = 40;  // steps
constexpr double kLongEnough = 500;                 // ms

/// Feeds as a reader would give them: floats in [0, 1), integers of the first class.
Batch made_up(const Program& program, int64_t samples) {
  Batch batch{.size = samples, .columns = {}};
  for (const auto& op : program.ir().main().ops) {
    if (source_kind(*op) != SourceKind::feed) continue;
    const Type& type = op->results[0].type;
    Tensor t(f32, extents(type.shape, samples));
    std::ranges::fill(t.as<float>(), 0.0F);
    for (size_t i = 0; is_float(type.dtype) && i < t.as<float>().size(); ++i) {
      t.as<float>()[i] = static_cast<float>(i * 37 % 101) / 101;
    }
    batch.columns.emplace_back(op->symbol, t.cast(type.dtype));
  }
  return batch;
}

StepCost cost_of(const Program& program, Place place, const ExecutorOptions& options) {
  Executor executor(program, place, options);
  const Batch batch = made_up(program, options.batch);
  for (int i = 0; i < kWarmUp; ++i) executor.run(batch);
  std::vector<double> times;
  const Stopwatch all;
  while (times.size() < kLeast || (times.size() < kMost && all.ms() < kLongEnough)) {
    const Stopwatch step;
    executor.run(batch);
    times.push_back(step.ms());
  }
  std::ranges::sort(times);
  return {times[times.size() / 2], executor.memory().total};
}

/// All that the figures depend on.
std::string question(const Program& program, const ExecutorOptions& o) {
  const TargetDescription host = describe_host(o.threads);
  return fmt::format("amp {} {} {} {} {} {} {} {} {}\n{}\n{}\n{}", o.batch, o.micro_batches,
                     o.memory_limit, fluid::name_of(o.amp->dtype), static_cast<int>(o.amp->level),
                     fmt::join(o.amp->in_f32, ","), fmt::join(o.amp->in_half, ","), o.libraries,
                     o.fuse, emit::code_version(), to_json(host), ir::print(program.ir()));
}

std::string record_of(const AmpChoice& c) {
  return nlohmann::ordered_json{{"f32", {c.in_f32.ms, c.in_f32.bytes}},
                                {"half", {c.in_half.ms, c.in_half.bytes}},
                                {"choice", c.half ? name_of(c.dtype) : name_of(f32)}}
      .dump();
}

std::optional<AmpChoice> kept_choice(const std::optional<std::string>& record, DType half) {
  const auto json = nlohmann::json::parse(record.value_or(""), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto cost = [&](const char* name) {
    return StepCost{json.at(name).at(0).get<double>(), json.at(name).at(1).get<int64_t>()};
  };
  return AmpChoice{json.at("choice") != name_of(f32), half, cost("f32"), cost("half"), true};
}

}  // namespace

std::string AmpChoice::text() const {
  const auto size = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  const StepCost& taken = half ? in_half : in_f32;
  const StepCost& left = half ? in_f32 : in_half;
  if (std::isinf(left.ms)) {
    return fmt::format("{}, as {} does not fit", name_of(half ? dtype : f32),
                       name_of(half ? f32 : dtype));
  }
  return fmt::format("{}: {:.3g} ms a step against {:.3g} ms in {}, arena {} against {}{}",
                     name_of(half ? dtype : f32), taken.ms, left.ms, name_of(half ? f32 : dtype),
                     size(taken.bytes), size(left.bytes), kept ? " (measured before)" : "");
}

bool half_is_better(const StepCost& in_f32, const StepCost& in_half) {
  if (in_half.ms < kMargin * in_f32.ms) return true;
  if (in_f32.ms < kMargin * in_half.ms) return false;
  return static_cast<double>(in_half.bytes) < kMargin * static_cast<double>(in_f32.bytes);
}

AmpChoice choose_amp(const Program& program, Place place, const ExecutorOptions& given) {
  ExecutorOptions options = given;
  options.choose_amp = options.verify_plan = options.check_finite = false;
  options.world = {};
  const DType half = options.amp->dtype;
  const ObjectCache cache(options.cache_dir, CompilerOptions().cache_limit);
  const std::string key = "k" + ObjectCache::key_of(question(program, options));
  if (const auto kept = kept_choice(cache.find(key), half)) return *kept;
  AmpChoice choice{.half = false, .dtype = half, .in_f32 = {}, .in_half = {}};
  std::string too_large;
  const auto cost = [&] {
    try {
      return cost_of(program, place, options);
    } catch (const UserError& e) {
      if (!too_large.empty()) throw;
      too_large = e.what();
      return StepCost{.ms = std::numeric_limits<double>::infinity(), .bytes = 0};
    }
  };
  choice.in_half = cost();
  options.amp = {};
  choice.in_f32 = cost();
  choice.half = half_is_better(choice.in_f32, choice.in_half);
  if (too_large.empty()) cache.put(key, record_of(choice));
  return choice;
}

}  // namespace fluid
