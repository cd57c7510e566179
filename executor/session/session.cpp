#include "executor/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "executor/device/out_of_memory.h"
#include "passes/pass.h"

namespace fluid {

Session::Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
                 const SessionOptions& options)
    : steps_(std::move(recorded), std::move(device), options),
      in_flight_(steps_),
      values_(steps_, in_flight_) {}

/// Errors of the last steps are dropped: no later call can report them.
Session::~Session() {
  try {
    in_flight_.wait_until_complete();
  } catch (const std::exception&) {
    return;
  }
}

PreparedStep& Session::prepare(const Options& options) {
  prepare(std::span(&options, 1));
  return *steps_.find(options);
}

/// Retries when a library rejects an op that its kernel claimed. The op then gets generated code.
void Session::prepare(std::span<const Options> wanted) {
  std::string refused;
  while (true) {
    try {
      return add(wanted);
    } catch (const LibraryRejection& refusal) {
      if (!steps_.is_bound()) throw;
      if (refused.empty()) refused = refusal.refused();
    } catch (const OutOfMemory& failure) {
      if (refused.empty()) throw;
      throw OutOfMemory(
          fmt::format("{}; generated code lacks the memory: {}", refused, failure.what()));
    } catch (const DeviceError& failure) {
      if (refused.empty()) throw;
      throw DeviceError(fmt::format("{}; generated code fails too: {}; use the place cpu", refused,
                                    failure.what()));
    }
  }
}

void Session::add(std::span<const Options> wanted) {
  steps_.require_runnable();
  const auto is_there = [&](const Options& o) { return steps_.find(o) != nullptr; };
  if (!wanted.empty() && std::ranges::all_of(wanted, is_there)) return;
  in_flight_.wait_until_complete();
  values_.register_variables(steps_.add(
      wanted, [&](const std::string& name) { return values_.has_value(name); },
      [&] { in_flight_.fetch_outputs(); }));
}

PreparedStep* Session::find(Mode mode, int64_t batch, const std::set<std::string>& feeds) const {
  return steps_.find({.mode = mode, .batch = batch, .feeds = feeds});
}

void Session::initialise() {
  if (!values_.exist()) prepare(std::span<const Options>());
  values_.initialise();
}

OutputViews Session::run(PreparedStep& step, const Batch& batch) {
  steps_.require_runnable();
  values_.complete();
  return in_flight_.run(step, batch);
}

void Session::adopt_tuning_record(const std::map<std::string, std::string>& decisions) {
  in_flight_.wait_until_complete();
  if (!steps_.device().adopt_tuning_record(decisions)) return;
  in_flight_.fetch_outputs();
  steps_.rebind_steps();
}

void Session::rerun_watched(const PreparedStep& step, size_t last, const Batch& batch,
                            const VariableValues::Controls& controls,
                            const StepsInFlight::See& see) {
  in_flight_.wait_until_complete();
  in_flight_.clear_rejection();
  std::vector<std::byte> after(static_cast<size_t>(memory().regions().state));
  memory().read(after.data(), memory().at().state, memory().regions().state);
  try {
    values_.restore(controls);
    in_flight_.rerun_watched(step, last, batch, see);
  } catch (...) {
    end_rerun(step, after, std::current_exception());
    throw;
  }
  end_rerun(step, after, nullptr);
}

/// Removes the watch callbacks and restores the state region from `state`. If restoring fails, the
/// session gives up with `why`, or with the restore's own error when `why` is null.
void Session::end_rerun(const PreparedStep& step, std::span<const std::byte> state,
                        const std::exception_ptr& why) {
  for (const PreparedStep::Run& run : step.runs()) run.part->executable->watch(nullptr);
  try {
    // The flag stems from the rerun, or its error has been reported already.
    steps_.memory().allow_updates();
    values_.write(memory().at().state, state.data(), std::ssize(state));
  } catch (...) {
    steps_.give_up(why ? why : std::current_exception());
  }
}

Profile Session::profile() const {
  const SessionOptions& options = steps_.options();
  Profile profile{.program = recorded().name,
                  .rank = options.passes.rank,
                  .threads = memory().is_host() ? device().threads() : 0,
                  .warm_up = options.profile ? options.profile->warm_up : 0,
                  .steps = {}};
  for (const auto& step : steps_.all()) {
    if (!step->recorder() || step->recorder()->times().empty()) continue;
    ProfiledStep profiled{.mode = step->options().mode, .batch = step->options().batch};
    const auto times = step->recorder()->times();
    profiled.times.assign(times.begin(), times.end());
    for (const PreparedStep::Run& run : step->runs()) {
      std::vector<CallInfo>& calls = profiled.runs.emplace_back();
      for (const ir::Op* op : run.part->executable->calls()) {
        calls.push_back(call_info(*op, run.slice.samples, device().target()));
      }
    }
    profile.steps.push_back(std::move(profiled));
  }
  return profile;
}

}  // namespace fluid
