#include "executor/fluidrun/plan_world.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "executor/device/bytes_text.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/session/session_options.h"
#include "executor/trainer/fit_loop.h"
#include "executor/tuning/measured_step.h"
#include "ir/error.h"
#include "ir/number.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

// default latency of a message in microseconds, typical of TCP within a rack
constexpr double kDefaultLatency = 50;

std::string must_not_be_negative(const std::string& text) {
  const bool zero = parse_number<double>(text) == 0.0;
  return zero || validate_positive(text).empty() ? ""
                                                 : "must be a number of at least 0, not " + text;
}

struct PlannedCollective {
  const ir::Op* op = nullptr;
  size_t op_index = 0;  ///< index of the collective among the ops of its micro-batch
  size_t op_count = 0;  ///< number of ops in the micro-batch that contains the collective

  double bytes() const { return static_cast<double>(traffic_of_collective(*op).bytes); }
  /// Whether the collective can overlap with kernels: true for gradients and outputs, false for
  /// batch norm statistics.
  bool can_overlap() const { return op->role == ir::Role::comm; }
};

/// The collectives of a step, in the order in which the step issues them.
std::vector<PlannedCollective> collectives_of(const PlannedStep& step) {
  std::vector<PlannedCollective> all;
  for (const PlannedProgram& planned : step.micro_batches) {
    const auto& ops = planned.program->main().ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (is_collective(*ops[i])) all.push_back({ops[i].get(), i, ops.size()});
    }
  }
  return all;
}

void print_blocking_collectives(const std::vector<PlannedCollective>& collectives,
                                const Timeline* times) {
  int64_t count = 0;
  double bytes = 0, ms = 0;
  for (size_t i = 0; i < collectives.size(); ++i) {
    if (collectives[i].can_overlap()) continue;
    ++count;
    bytes += collectives[i].bytes();
    if (times != nullptr) ms += times->collectives.at(i).end - times->collectives.at(i).begin;
  }
  if (count == 0) return;
  fmt::print("  of these {}, {} in all, are statistics, which kernels wait for{}\n", count,
             bytes_text(bytes), times == nullptr ? "" : fmt::format(": {:.3f} ms", ms));
}

void print_messages(const std::vector<PlannedCollective>& collectives, const Timeline* times) {
  if (collectives.empty()) return;
  print_blocking_collectives(collectives, times);
  fmt::print("  {:>7} {:>8} {:>12} {:>16}", "message", "tensors", "size", "complete after");
  if (times != nullptr) fmt::print(" {:>13} {:>13}", "sent from", "to");
  fmt::print("\n");
  for (size_t i = 0; i < collectives.size(); ++i) {
    const PlannedCollective& c = collectives[i];
    if (!c.can_overlap()) continue;
    fmt::print("  {:>7} {:>8} {:>12}", i, c.op->operands.size(), bytes_text(c.bytes()));
    if (times == nullptr) {
      fmt::print(" {:>16}\n", fmt::format("op {} of {}", c.op_index, c.op_count));
      continue;
    }
    const CollectiveTimes& t = times->collectives.at(i);
    fmt::print(" {:>13.3f} ms {:>10.3f} ms {:>10.3f} ms\n", t.ready, t.begin, t.end);
  }
}

/// Throughput of `world` processes in samples per second. `batch`: samples per process. `ms`: time
/// of a step.
double samples_per_second(int64_t world, int64_t batch, double ms) {
  return 1e3 * static_cast<double>(world) * static_cast<double>(batch) / ms;
}

/// Prints the predicted strong-scaling speedup over one process that runs the global batch.
/// `parallel_ms`: predicted step time with all ranks. `single_ms`: step time of one process with
/// the batch of one rank. Measures one process with twice the batch of one rank, and extrapolates
/// linearly to the global batch. Prints nothing if twice the batch may not fit in memory.
void print_strong_scaling(const Program& program, ExecutorOptions options, const PlannedStep& step,
                          double single_ms, double parallel_ms) {
  const int world = options.distributed.world.size;
  if (world == 1 || 2 * step.arena_bytes() > session_options(options).memory.bytes) return;
  const int64_t batch = options.batch;
  options.distributed.world = {};
  options.batch *= 2;
  const double twice = simulate_timeline(measure_steps(program, {options})[0].calls, {}).step;
  const double whole = single_ms + (world - 1) * std::max(0.0, twice - single_ms);
  fmt::print(
      "  {} samples in one process: about {:.3f} ms, by its steps of {} and {}: strong scaling "
      "{:.2f} of {}\n",
      world * batch, whole, batch, options.batch, whole / parallel_ms, world);
}

}  // namespace

void add_plan_world_flags(CLI::App& command, PlanWorldFlags& flags) {
  begin_group(command, kDistributedGroup);
  command
      .add_option("--world", flags.world,
                  "print the collectives of a training step with this many ranks")
      ->check(validate_positive_integer)
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->type_name("N");
  command
      .add_option("--bandwidth", flags.bandwidth,
                  "network bandwidth of a rank; times the step on this machine and predicts "
                  "overlap and scaling")
      ->check(validate_positive)
      ->type_name("GB/S");
  command
      .add_option("--latency", flags.latency,
                  fmt::format("latency of a message (default: {})", kDefaultLatency))
      ->check(must_not_be_negative)
      ->type_name("MICROSECONDS");
  add_collective_flags(command, flags.collectives);
}

void check_plan_world_flags(const PlanWorldFlags& flags, const Program& program, Mode mode,
                            Place place, bool has_target) {
  if (flags.latency && !flags.bandwidth) throw UserError("--latency: needs --bandwidth");
  if (flags.bandwidth && !flags.world) throw UserError("--bandwidth: needs --world");
  if (flags.bandwidth && has_target) {
    throw UserError("--bandwidth times the step on this machine: --target is invalid with it");
  }
  if (flags.bandwidth && place != cpu()) {
    throw UserError("--bandwidth times the step on the CPU: --place must be cpu");
  }
  if (!flags.world) return;
  if (mode != Mode::train) throw UserError("--world: only the train pipeline has several ranks");
  if (find_directive(program.ir().main()) == nullptr) {
    throw UserError("--world: program '" + program.ir().name + "' minimizes nothing");
  }
}

void print_planned_collectives(const PlanWorldFlags& flags, const Program& program,
                               const ExecutorOptions& options, const PlannedStep& step) {
  if (!flags.world) return;
  const int64_t world = *flags.world, batch = options.batch;
  const std::vector<PlannedCollective> collectives = collectives_of(step);
  double bytes = 0;
  for (const PlannedCollective& c : collectives) bytes += c.bytes();
  fmt::print("{} processes with {} samples each reduce {} a step, in {} messages\n", world, batch,
             bytes_text(bytes), collectives.size());
  if (!flags.bandwidth) return print_messages(collectives, nullptr);

  const Link link{.world = world,
                  .bytes_per_ms = *flags.bandwidth * 1e6,
                  .latency_ms = flags.latency.value_or(kDefaultLatency) / 1e3};
  ExecutorOptions alone = options;
  alone.distributed.world = {};
  const auto steps = measure_steps(program, {options, alone});
  const Timeline t = simulate_timeline(steps[0].calls, link);
  const double single_ms = simulate_timeline(steps[1].calls, {}).step;
  check(t.collectives.size() == collectives.size(), "a step sends other messages than planned");
  print_messages(collectives, &t);
  fmt::print("measured here, medians of {} steps: {:.3f} ms, and {:.3f} ms as one process alone\n",
             steps[0].runs, t.computing, single_ms);
  fmt::print("predicted at {:g} GB/s and {:g} us a message: {:.3f} ms a step\n", *flags.bandwidth,
             1e3 * link.latency_ms, t.step);
  fmt::print("  communication {:.3f} ms, {:.1f} % of it overlapped, {:.3f} ms exposed\n",
             t.communicating, 100 * t.overlap_fraction(), t.exposed_ms());
  const double request_sync_ms = collective_ms({.bytes = sizeof(FitRequests)}, link),
               ms = t.step + request_sync_ms;
  fmt::print("and {:.3f} ms between steps, in which ranks agree whether to stop or to save\n",
             request_sync_ms);
  fmt::print("  {:.0f} samples/s, one process {:.0f}: efficiency {:.1f} %\n",
             samples_per_second(world, batch, ms), samples_per_second(1, batch, single_ms),
             100 * single_ms / ms);
  print_strong_scaling(program, options, step, single_ms, ms);
}

}  // namespace fluid
