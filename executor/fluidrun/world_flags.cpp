#include "executor/fluidrun/world_flags.h"

#include <CLI/CLI.hpp>

#include "executor/fluidrun/common.h"
#include "ir/error.h"

namespace fluid {

namespace {

Buckets buckets_of(const ExchangeFlags& flags) {
  Buckets buckets;
  buckets.first_bytes = parse_bytes(flags.first);
  buckets.bytes = parse_bytes(flags.others);
  if (flags.dtype.empty()) return buckets;
  buckets.dtype = dtype_named(flags.dtype);
  if (!buckets.dtype || !is_half(*buckets.dtype)) {
    throw UserError("--reduce-dtype is bf16 or f16, not '" + flags.dtype + "'");
  }
  return buckets;
}

}  // namespace

void add_exchange_flags(CLI::App& command, ExchangeFlags& flags) {
  command.add_option("--first-bucket", flags.first, "bytes of the first gradients sent")
      ->capture_default_str();
  command.add_option("--bucket", flags.others, "bytes of gradients sent together")
      ->capture_default_str();
  command.add_option("--reduce-dtype", flags.dtype, "send gradients as bf16 or f16");
  command
      .add_option("--zero", flags.zero,
                  "1: each process keeps and updates a part of the optimizer's state (ZeRO-1)")
      ->check(CLI::IsMember({0, 1}))
      ->capture_default_str();
  command.add_flag("--sync-bn", flags.sync_bn,
                   "batch norm by the samples of all processes, not of each its own");
}

void set_exchanges(ExecutorOptions& options, const ExchangeFlags& flags) {
  options.distributed.buckets = buckets_of(flags);
  options.distributed.zero = flags.zero;
  options.distributed.sync_bn = flags.sync_bn;
}

void add_world_flags(CLI::App& command, WorldFlags& flags) {
  command.add_option("--comm-timeout", flags.timeout, "seconds that another process may be late")
      ->check(must_be_positive)
      ->capture_default_str();
  command
      .add_option(
          "--first-timeout", flags.first_timeout,
          "the same until the first step, which others may still compile, and while rank 0 saves")
      ->check(must_be_positive)
      ->capture_default_str();
  command.add_flag("--force-collectives", flags.force_collectives,
                   "let one process exchange gradients as several do, with itself: tries NCCL on "
                   "one GPU");
  add_exchange_flags(command, flags.exchanges);
}

void set_world(ExecutorOptions& options, const WorldFlags& flags, const World& world) {
  options.distributed.world = world;
  options.distributed.force_collectives = flags.force_collectives;
  set_exchanges(options, flags.exchanges);
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
  };
  options.distributed.comm_timeout = milliseconds(flags.timeout);
  options.distributed.first_timeout = milliseconds(flags.first_timeout);
}

}  // namespace fluid
