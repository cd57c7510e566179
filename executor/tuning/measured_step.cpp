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

constexpr double kEnoughMs = 1000;

/// Assigns messages to collectives, and finds which calls wait for them.
class Messages {
 public:
  /// Must be called for the ops in execution order.
  TimedCall call_of(const ir::Op& op) {
    TimedCall call;
    for (const Value& v : op.operands) {
      const auto number = numbers_.find(root_of(v).op());
      if (number != numbers_.end())
        call.awaited_collectives = std::max(call.awaited_collectives, number->second);
    }
    if (is_collective(op)) {
      call.sent = message_of(op);
      numbers_[&op] = ++count_;
    }
    return call;
  }

 private:
  size_t count_ = 0;
  std::map<const ir::Op*, size_t> numbers_;
};

/// The median without the warm-up steps.
double middle(std::span<const double> times) { return median(times.subspan(kWarmUpSteps)); }

/// Times the calls of a step for each run.
class CallClock {
 public:
  explicit CallClock(const PreparedStep& step) : step_(step) {
    for (const PreparedStep::Run& run : step_.runs()) {
      run.part->executable->watch([this](const ir::Op& op, void* const*, bool done) {
        if (done) {
          end(op);
        } else {
          begin_ = Stopwatch();
        }
        return true;
      });
    }
  }
  ~CallClock() {
    for (const PreparedStep::Run& run : step_.runs()) run.part->executable->watch(nullptr);
  }
  CallClock(const CallClock&) = delete;

  /// Ends a run that took `ms` in total.
  void close_run(double ms) {
    for (size_t i = 0; i < at_; ++i) ms -= times_[i].back();
    between_.push_back(ms);
    at_ = 0;
  }

  MeasuredStep result() {
    MeasuredStep measured{.calls = {{.ms = middle(between_)}},
                          .runs = static_cast<int64_t>(between_.size() - kWarmUpSteps)};
    Messages messages;
    for (size_t i = 0; i < ops_.size(); ++i) {
      measured.calls.push_back(messages.call_of(*ops_[i]));
      measured.calls.back().ms = middle(times_[i]);
    }
    return measured;
  }

 private:
  void end(const ir::Op& op) {
    const double ms = begin_.ms();
    if (at_ == ops_.size()) {
      ops_.push_back(&op);
      times_.emplace_back();
    }
    check(ops_[at_] == &op, "a step ran other kernels than before");
    times_[at_++].push_back(ms);
  }

  const PreparedStep& step_;
  Stopwatch begin_;
  size_t at_ = 0;                           ///< calls in this run so far
  std::vector<const ir::Op*> ops_;          ///< in execution order
  std::vector<std::vector<double>> times_;  ///< ms, by call and run
  std::vector<double> between_;             ///< ms of each run outside of its calls
};

/// A training step in a session of its own.
class Trial {
 public:
  Trial(const Program& program, const ExecutorOptions& options, const SessionOptions& how)
      : absent_peers_(make_communicator({}, options.distributed.comm_timeout)),
        session_(program.ir().clone(),
                 cpu_device({.threads = options.threads,
                             .cache_dir = options.cache_dir,
                             .communicator =
                                 options.distributed.world.size > 1 ? absent_peers_.get() : nullptr,
                             .trial = true}),
                 how),
        step_(prepared(how.passes, options.batch)),
        input_(trial_batch(program, options.batch)),
        clock_(step_) {
    input_.whole = options.batch * options.distributed.world.size;
  }

  void run() {
    const Stopwatch watch;
    session_.run(step_, input_).wait();
    clock_.close_run(watch.ms());
  }
  MeasuredStep result() { return clock_.result(); }
  int64_t bytes() const { return session_.memory().regions().total(); }

 private:
  PreparedStep& prepared(Options options, int64_t batch) {
    options.batch = batch;
    PreparedStep& step = session_.prepare(options);
    session_.initialise();
    return step;
  }

  /// A communicator of one process, whose collectives do nothing.
  std::unique_ptr<Communicator> absent_peers_;
  Session session_;
  PreparedStep& step_;
  Batch input_;
  CallClock clock_;
};

}  // namespace

Message message_of(const ir::Op& exchange) {
  Message message{.bytes = collective_bytes(exchange)};
  if (collective_kind(exchange) != CollectiveKind::sum) message.rounds = 1;
  return message;
}

std::vector<MeasuredStep> measure_steps(const Program& program,
                                        const std::vector<ExecutorOptions>& options) {
  std::vector<std::unique_ptr<Trial>> trials;
  int64_t taken = 0;
  for (const ExecutorOptions& o : options) {
    SessionOptions how = session_options(o);
    how.memory.bytes -= taken;
    trials.push_back(std::make_unique<Trial>(program, o, how));
    taken += trials.back()->bytes();
  }
  const auto run_all = [&] {
    for (const auto& trial : trials) trial->run();
  };
  time_steps(run_all, kEnoughMs * static_cast<double>(trials.size()));
  std::vector<MeasuredStep> measured;
  for (const auto& trial : trials) measured.push_back(trial->result());
  return measured;
}

}  // namespace fluid
