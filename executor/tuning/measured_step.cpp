#include "executor/tuning/measured_step.h"

#include <algorithm>
#include <map>

#include "executor/cpu/cpu_device.h"
#include "executor/session/session.h"
#include "executor/session/session_options.h"
#include "executor/tuning/trial_steps.h"
#include "ir/stopwatch.h"
#include "ops/comm/collective.h"
#include "passes/collective_order.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr double kTrialBudgetMs = 1000;

/// Counts the collectives of a step. Computes how many collectives must complete before each call.
class CollectiveTracker {
 public:
  /// Returns the TimedCall of `op` with its time unset. Must be called once per op, in execution
  /// order.
  TimedCall call_of(const ir::Op& op) {
    TimedCall call;
    for (const Value& v : op.operands) {
      const auto number = collective_numbers_.find(root_of(v).op());
      if (number != collective_numbers_.end())
        call.awaited_collectives = std::max(call.awaited_collectives, number->second);
    }
    if (is_collective(op)) {
      call.started_collective = traffic_of_collective(op);
      collective_numbers_[&op] = ++count_;
    }
    return call;
  }

 private:
  size_t count_ = 0;
  std::map<const ir::Op*, size_t> collective_numbers_;
};

/// Returns the median of `times`, ignoring the warm-up steps.
double median_after_warm_up(std::span<const double> times) {
  return median(times.subspan(kWarmUpSteps));
}

/// Records the time of each call in each run of a step.
class CallClock {
 public:
  explicit CallClock(const PreparedStep& step) : step_(step) {
    for (const PreparedStep::Run& run : step_.runs()) {
      run.compiled->executable->set_observer([this](const ir::Op& op, void* const*, bool done) {
        if (done) {
          end_call(op);
        } else {
          begin_ = Stopwatch();
        }
        return true;
      });
    }
  }
  ~CallClock() {
    for (const PreparedStep::Run& run : step_.runs())
      run.compiled->executable->set_observer(nullptr);
  }
  CallClock(const CallClock&) = delete;

  /// Ends a run of `ms` ms. Records the time that the run spent outside of calls.
  void end_run(double ms) {
    for (size_t i = 0; i < num_calls_; ++i) ms -= times_[i].back();
    outside_calls_.push_back(ms);
    num_calls_ = 0;
  }

  MeasuredStep result() {
    MeasuredStep measured{.calls = {{.ms = median_after_warm_up(outside_calls_)}},
                          .runs = static_cast<int64_t>(outside_calls_.size() - kWarmUpSteps)};
    CollectiveTracker tracker;
    for (size_t i = 0; i < ops_.size(); ++i) {
      measured.calls.push_back(tracker.call_of(*ops_[i]));
      measured.calls.back().ms = median_after_warm_up(times_[i]);
    }
    return measured;
  }

 private:
  void end_call(const ir::Op& op) {
    const double ms = begin_.ms();
    if (num_calls_ == ops_.size()) {
      ops_.push_back(&op);
      times_.emplace_back();
    }
    check(ops_[num_calls_] == &op, "a step ran other kernels than before");
    times_[num_calls_++].push_back(ms);
  }

  const PreparedStep& step_;
  Stopwatch begin_;
  size_t num_calls_ = 0;                    ///< number of completed calls of the current run
  std::vector<const ir::Op*> ops_;          ///< ops of the calls, in execution order
  std::vector<std::vector<double>> times_;  ///< times in ms, indexed by call and run
  std::vector<double> outside_calls_;       ///< ms spent outside of calls, indexed by run
};

/// A training step to be timed, in its own session.
class TrialStep {
 public:
  TrialStep(const Program& program, const ExecutorOptions& options, const SessionOptions& settings)
      : no_op_communicator_(make_communicator({}, options.distributed.comm_timeout)),
        session_(program.ir().clone(),
                 cpu_device({.threads = options.threads,
                             .cache_dir = options.cache_dir,
                             .communicator = options.distributed.world.size > 1
                                                 ? no_op_communicator_.get()
                                                 : nullptr,
                             .collectives_are_local = true,
                             .tune = options.cpu.tune}),
                 settings),
        step_(prepared(settings.passes, options.batch)),
        input_(synthetic_batch(program, options.batch)),
        clock_(step_) {
    input_.global_batch_size = options.batch * options.distributed.world.size;
  }

  void run() {
    const Stopwatch watch;
    session_.run(step_, input_).wait();
    clock_.end_run(watch.ms());
  }
  MeasuredStep result() { return clock_.result(); }
  int64_t bytes() const { return session_.memory().regions().total_bytes(); }

 private:
  PreparedStep& prepared(Options options, int64_t batch) {
    options.batch = batch;
    PreparedStep& step = session_.prepare(options);
    session_.initialise();
    return step;
  }

  /// Communicator whose collectives are no-ops.
  std::unique_ptr<Communicator> no_op_communicator_;
  Session session_;
  PreparedStep& step_;
  Batch input_;
  CallClock clock_;
};

}  // namespace

CollectiveTraffic traffic_of_collective(const ir::Op& collective) {
  CollectiveTraffic traffic{.bytes = collective_bytes(collective)};
  if (collective_kind(collective) != CollectiveKind::all_reduce) traffic.ring_passes = 1;
  return traffic;
}

std::vector<MeasuredStep> measure_steps(const Program& program,
                                        const std::vector<ExecutorOptions>& options) {
  std::vector<std::unique_ptr<TrialStep>> trials;
  int64_t reserved_bytes = 0;
  for (const ExecutorOptions& o : options) {
    SessionOptions settings = session_options(o);
    settings.memory.bytes -= reserved_bytes;
    trials.push_back(std::make_unique<TrialStep>(program, o, settings));
    reserved_bytes += trials.back()->bytes();
  }
  const auto run_all = [&] {
    for (const auto& trial : trials) trial->run();
  };
  time_steps(run_all, kTrialBudgetMs * static_cast<double>(trials.size()));
  std::vector<MeasuredStep> measured;
  for (const auto& trial : trials) measured.push_back(trial->result());
  return measured;
}

}  // namespace fluid
