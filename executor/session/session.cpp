#include "executor/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "executor/device/out_of_memory.h"
#include "ir/length.h"
#include "passes/pass.h"

namespace fluid {

Session::Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
                 const SessionOptions& options)
    : steps_(std::move(recorded), std::move(device), options),
      in_flight_(steps_),
      values_(steps_, in_flight_) {}

/// Ignores the errors of the last steps, because no later call can report them.
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

/// If a library rejects an op that was assigned to the library, prepares the steps again. The
/// second attempt generates code for the op.
void Session::prepare(std::span<const Options> wanted) {
  std::string rejection_reason;
  while (true) {
    try {
      return try_prepare(wanted);
    } catch (const LibraryPreparationError& error) {
      if (!steps_.is_bound()) throw;
      if (rejection_reason.empty()) rejection_reason = error.reason();
    } catch (const OutOfMemory& failure) {
      if (rejection_reason.empty()) throw;
      throw OutOfMemory(
          fmt::format("{}; generated code lacks the memory: {}", rejection_reason, failure.what()));
    } catch (const DeviceError& failure) {
      if (rejection_reason.empty()) throw;
      throw DeviceError(fmt::format("{}; generated code fails too: {}; use the place cpu",
                                    rejection_reason, failure.what()));
    }
  }
}

void Session::try_prepare(std::span<const Options> wanted) {
  steps_.require_runnable();
  const auto is_prepared = [&](const Options& o) { return steps_.find(o) != nullptr; };
  if (!wanted.empty() && std::ranges::all_of(wanted, is_prepared)) return;
  in_flight_.wait_until_complete();
  values_.register_variables(steps_.add_steps(
      wanted, [&](const std::string& name) { return values_.has_value(name); },
      [&] { in_flight_.fetch_outputs(); }));
}

PreparedStep* Session::find(Mode mode, const std::string& recipe, int64_t batch, int64_t length,
                            const std::set<std::string>& feeds, int64_t global_batch) const {
  return steps_.find({.mode = mode,
                      .recipe = recipe,
                      .batch = batch,
                      .sequence_length = length,
                      .global_batch = global_batch,
                      .feeds = feeds});
}

void Session::initialise() {
  if (!values_.are_allocated()) prepare(std::span<const Options>());
  values_.initialise();
}

OutputViews Session::run(PreparedStep& step, const Batch& batch) {
  steps_.require_runnable();
  values_.prepare_for_step();
  if (step.options().mode == Mode::predict) values_.prepare_for_predict();
  if (step.options().mode == Mode::train) values_.mark_variables_changed();
  return in_flight_.run(step, batch);
}

void Session::adopt_tuning_record(const std::map<std::string, std::string>& record) {
  in_flight_.wait_until_complete();
  if (!steps_.device().adopt_tuning_record(record)) return;
  in_flight_.fetch_outputs();
  steps_.rebind_steps();
}

void Session::rerun_observed(const PreparedStep& step, size_t last_micro_batch, const Batch& batch,
                             const VariableValues::ControlValues& controls,
                             const StepsInFlight::RerunObserver& observer) {
  in_flight_.wait_until_complete();
  in_flight_.clear_rejection();
  std::vector<std::byte> after(static_cast<size_t>(memory().regions().state));
  memory().read(after.data(), memory().addresses().state, memory().regions().state);
  try {
    values_.restore_control_variables(controls);
    in_flight_.rerun_observed(step, last_micro_batch, batch, observer);
  } catch (...) {
    restore_after_rerun(step, after, std::current_exception());
    throw;
  }
  restore_after_rerun(step, after, nullptr);
}

/// Removes the callbacks of the rerun from the executables, and restores the state region from
/// `state`. `why`: error of the rerun; null if the rerun succeeded. If restoring fails, marks all
/// steps as not runnable, and throws `why`, or the restore error if `why` is null.
void Session::restore_after_rerun(const PreparedStep& step, std::span<const std::byte> state,
                                  const std::exception_ptr& why) {
  for (const PreparedStep::Run& run : step.runs()) run.compiled->executable->set_observer(nullptr);
  try {
    // The rerun may have set the rejection flag, which would make the next step skip its update.
    steps_.memory().clear_rejection_flag();
    values_.write(memory().addresses().state, state.data(), std::ssize(state));
  } catch (...) {
    steps_.fail_permanently(why ? why : std::current_exception());
  }
}

Profile Session::profile() const {
  const SessionOptions& options = steps_.options();
  Profile profile{.program = recorded_program().name,
                  .rank = options.passes.rank,
                  .threads = memory().is_host_accessible() ? device().threads() : 0,
                  .warm_up = options.profile ? options.profile->warm_up : 0,
                  .steps = {}};
  for (const auto& step : steps_.all()) {
    if (!step->recorder() || step->recorder()->times().empty()) continue;
    const Options& step_options = step->options();
    ProfiledStep profiled{.mode = step_options.mode, .batch = step_options.batch};
    if (ir::has_length(recorded_program())) profiled.length = step_options.sequence_length;
    const auto times = step->recorder()->times();
    profiled.times.assign(times.begin(), times.end());
    for (const PreparedStep::Run& run : step->runs()) {
      std::vector<CallInfo>& calls = profiled.runs.emplace_back();
      for (const auto& [op, steps] : run.compiled->executable->calls()) {
        calls.push_back(call_info(*op, run.micro_batch.samples, device().target()));
        calls.back().repeat(steps);
      }
    }
    profile.steps.push_back(std::move(profiled));
  }
  return profile;
}

}  // namespace fluid
