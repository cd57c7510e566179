#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "executor/profile/profile.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kComputeThread = 1, kCommunicationThread = 2;  // IDs of the two threads in the trace

/// Collects the trace events of one process.
class Trace {
 public:
  Trace(const Profile& profile, const PeakRates& rates) : rates_(rates), rank_(profile.rank) {
    name("process_name", kComputeThread, fmt::format("rank {}: {}", rank_, profile.program));
    name("thread_name", kComputeThread, "steps, " + profile.device_text());
    for (const ProfiledStep& step : profile.steps) {
      for (size_t i = 0; i < step.times.size(); ++i) add(step, i);
    }
    if (has_collectives_) name("thread_name", kCommunicationThread, "communication");
  }
  std::string text() const {
    Json all = {{"traceEvents", events_}, {"displayTimeUnit", "ms"}};
    if (rates_.bytes_per_second > 0) {
      const std::string wide = std::string("at most, GFLOP/s in ") + rates_.f32_name();
      all["otherData"] = {{wide, rates_.flops_f32 / 1e9},
                          {"at most, GFLOP/s in bf16", rates_.flops_bf16 / 1e9},
                          {"at most, GB/s of memory", rates_.bytes_per_second / 1e9}};
    }
    return all.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  void name(const char* what, int thread, const std::string& name) {
    events_.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", rank_}, {"tid", thread}, {"args", {{"name", name}}}});
  }

  void add(const std::string& name, std::string_view category, int thread, const TimeSpan& span,
           Json args) {
    if (span.ns() <= 0) return;
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", static_cast<double>(span.begin) / 1e3},
                       {"dur", static_cast<double>(span.ns()) / 1e3},
                       {"pid", rank_},
                       {"tid", thread},
                       {"args", std::move(args)}});
  }

  void add(const ProfiledStep& step, size_t number) {
    const StepTimes& times = step.times[number];
    add(step.name(), "step", kComputeThread, times.step, {{"recorded step", number}});
    for (size_t i = 0; i < times.runs.size(); ++i) {
      const RunTimes& run = times.runs[i];
      add("copy feeds", "feeds", kComputeThread, run.feeds, Json::object());
      for (size_t c = 0; c < run.calls.size(); ++c) add(step.runs[i][c], run.calls[c]);
      add("wait for processes", "wait", kComputeThread, run.final_wait, Json::object());
    }
  }

  void add(const CallInfo& call, const CallTimes& times) {
    const std::string_view role = ir::name_of(call.role);
    Json args = {{"layer", call.layer}, {"kernel", call.kernel}, {"line", call.line}};
    add("wait for processes", "wait", kComputeThread, times.wait, args);
    const TimeSpan& work = call.is_collective ? times.collective : times.call;
    add_rate(args, "bytes", "GB/s", call.bytes, work,
             call.is_collective ? 0 : rates_.bytes_per_second);
    if (call.flops > 0) {
      add_rate(args, "flops", "GFLOP/s", call.flops, work, rates_.flops(call.dtype));
    }
    if (call.predicted_ms >= 0) args["predicted_ms"] = call.predicted_ms;
    const std::string name = call.layer + ": " + call.ops;
    has_collectives_ |= call.is_collective;
    add(name, role, call.is_collective ? kCommunicationThread : kComputeThread, work,
        std::move(args));
  }

  /// Adds `amount` and its rate over `span` to `args`. `peak`: peak rate per second; 0 if unknown.
  static void add_rate(Json& args, const std::string& what, const std::string& unit, double amount,
                       const TimeSpan& span, double peak) {
    const double rate = amount / static_cast<double>(span.ns());
    args[what] = amount;
    args[unit] = rate;
    if (peak > 0) args["% of " + unit] = 1e11 * rate / peak;
  }

  const PeakRates& rates_;
  int64_t rank_;
  bool has_collectives_ = false;
  Json events_ = Json::array();
};

}  // namespace

std::string Profile::trace(const PeakRates& rates) const { return Trace(*this, rates).text(); }

}  // namespace fluid
