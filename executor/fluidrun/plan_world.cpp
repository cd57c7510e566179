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

constexpr double kLatency = 50;  // microseconds: TCP within a rack

std::string must_not_be_negative(const std::string& text) {
  const bool zero = parse_number<double>(text) == 0.0;
  return zero || must_be_positive(text).empty() ? ""
                                                : "must be a number of at least 0, not " + text;
}

struct PlannedCollective {
  const ir::Op* op = nullptr;
  size_t position = 0;  ///< index among the ops of its micro-batch
  size_t ops = 0;       ///< of its micro-batch

  double bytes() const { return static_cast<double>(message_of(*op).bytes); }
  /// Whether it overlaps with kernels: gradients and outputs do, batch norm's statistics do not.
  bool can_overlap() const { return op->role == ir::Role::comm; }
};

/// In the order in which they are sent.
std::vector<PlannedCollective> collectives_of(const PlannedStep& step) {
  std::vector<PlannedCollective> all;
  for (const PlannedProgram& part : step.parts) {
    const auto& ops = part.program->main().ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (is_collective(*ops[i])) all.push_back({ops[i].get(), i, ops.size()});
    }
  }
  return all;
}

void print_statistics(const std::vector<PlannedCollective>& collectives, const Timeline* times) {
  int64_t count = 0;
  double bytes = 0, ms = 0;
  for (size_t i = 0; i < collectives.size(); ++i) {
    if (collectives[i].can_overlap()) continue;
    ++count;
    bytes += collectives[i].bytes();
    if (times != nullptr) ms += times->messages.at(i).end - times->messages.at(i).begin;
  }
  if (count == 0) return;
  fmt::print("  of these {}, {} in all, are statistics, which kernels wait for{}\n", count,
             bytes_text(bytes), times == nullptr ? "" : fmt::format(": {:.3f} ms", ms));
}

void print_messages(const std::vector<PlannedCollective>& collectives, const Timeline* times) {
  if (collectives.empty()) return;
  print_statistics(collectives, times);
  fmt::print("  {:>7} {:>8} {:>12} {:>16}", "message", "tensors", "size", "complete after");
  if (times != nullptr) fmt::print(" {:>13} {:>13}", "sent from", "to");
  fmt::print("\n");
  for (size_t i = 0; i < collectives.size(); ++i) {
    const PlannedCollective& e = collectives[i];
    if (!e.can_overlap()) continue;
    fmt::print("  {:>7} {:>8} {:>12}", i, e.op->operands.size(), bytes_text(e.bytes()));
    if (times == nullptr) {
      fmt::print(" {:>16}\n", fmt::format("op {} of {}", e.position, e.ops));
      continue;
    }
    const MessageTimes& t = times->messages.at(i);
    fmt::print(" {:>13.3f} ms {:>10.3f} ms {:>10.3f} ms\n", t.complete, t.begin, t.end);
  }
}

/// Samples a second of `world` processes whose step takes `ms`.
double samples_per_second(int64_t world, int64_t batch, double ms) {
  return 1e3 * static_cast<double>(world) * static_cast<double>(batch) / ms;
}

/// Predicts the time of one process for the samples of all ranks, by a line through the times of a
/// step of a rank's batch, `one` ms, and of twice that batch, if that surely fits the memory.
void print_strong_scaling(const Program& program, ExecutorOptions options, const PlannedStep& step,
                          double one, double ms) {
  const int world = options.distributed.world.size;
  if (world == 1 || 2 * step.total() > session_options(options).memory.bytes) return;
  const int64_t batch = options.batch;
  options.distributed.world = {};
  options.batch *= 2;
  const double twice = timeline(measure_steps(program, {options})[0].calls, {}).step;
  const double whole = one + (world - 1) * std::max(0.0, twice - one);
  fmt::print(
      "  {} samples in one process: about {:.3f} ms, by its steps of {} and {}: strong scaling "
      "{:.2f} of {}\n",
      world * batch, whole, batch, options.batch, whole / ms, world);
}

}  // namespace

void add_plan_world_flags(CLI::App& command, PlanWorldFlags& flags) {
  begin_group(command, kDistributedGroup);
  command
      .add_option("--world", flags.world,
                  "print the collectives of a training step with this many ranks")
      ->check(must_be_count)
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->type_name("N");
  command
      .add_option("--bandwidth", flags.bandwidth,
                  "bandwidth of a rank: times the step on this machine, and predicts overlap and "
                  "scaling")
      ->check(must_be_positive)
      ->type_name("GB/S");
  command
      .add_option("--latency", flags.latency,
                  fmt::format("latency of a message; {} without it", kLatency))
      ->check(must_not_be_negative)
      ->type_name("MICROSECONDS");
  add_collective_flags(command, flags.collectives);
}

void check_plan_world(const PlanWorldFlags& flags, const Program& program, Mode mode, Place place,
                      bool other_target) {
  if (flags.latency && !flags.bandwidth) throw UserError("--latency: needs --bandwidth");
  if (flags.bandwidth && !flags.world) throw UserError("--bandwidth: needs --world");
  if (flags.bandwidth && other_target) {
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

void print_world(const PlanWorldFlags& flags, const Program& program,
                 const ExecutorOptions& options, const PlannedStep& step) {
  if (!flags.world) return;
  const int64_t world = *flags.world, batch = options.batch;
  const std::vector<PlannedCollective> collectives = collectives_of(step);
  double bytes = 0;
  for (const PlannedCollective& e : collectives) bytes += e.bytes();
  fmt::print("{} processes with {} samples each reduce {} a step, in {} messages\n", world, batch,
             bytes_text(bytes), collectives.size());
  if (!flags.bandwidth) return print_messages(collectives, nullptr);

  const Link link{.world = world,
                  .bytes_per_ms = *flags.bandwidth * 1e6,
                  .latency_ms = flags.latency.value_or(kLatency) / 1e3};
  ExecutorOptions alone = options;
  alone.distributed.world = {};
  const auto steps = measure_steps(program, {options, alone});
  const Timeline t = timeline(steps[0].calls, link);
  const double one = timeline(steps[1].calls, {}).step;
  check(t.messages.size() == collectives.size(), "a step sends other messages than planned");
  print_messages(collectives, &t);
  fmt::print("measured here, medians of {} steps: {:.3f} ms, and {:.3f} ms as one process alone\n",
             steps[0].runs, t.computing, one);
  fmt::print("predicted at {:g} GB/s and {:g} us a message: {:.3f} ms a step\n", *flags.bandwidth,
             1e3 * link.latency_ms, t.step);
  fmt::print("  communication {:.3f} ms, {:.1f} % of it overlapped, {:.3f} ms exposed\n",
             t.communicating, 100 * t.overlap(), t.exposed());
  const double request_sync_ms = message_ms({.bytes = sizeof(FitRequests)}, link),
               ms = t.step + request_sync_ms;
  fmt::print("and {:.3f} ms between steps, in which ranks agree whether to stop or to save\n",
             request_sync_ms);
  fmt::print("  {:.0f} samples/s, one process {:.0f}: efficiency {:.1f} %\n",
             samples_per_second(world, batch, ms), samples_per_second(1, batch, one),
             100 * one / ms);
  print_strong_scaling(program, options, step, one, ms);
}

}  // namespace fluid
