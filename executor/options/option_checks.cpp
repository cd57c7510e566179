#include "executor/options/option_checks.h"

#include <fmt/format.h>

#include <limits>

#include "ir/error.h"

namespace fluid {
namespace {

void check_profile(const ProfileOptions& o) {
  if (o.warm_up >= 0 && 1 <= o.steps && o.steps <= ProfileOptions::kMaxSteps) return;
  throw UserError(fmt::format("a profile of {} steps after {} others: it has 1 to {}", o.steps,
                              o.warm_up, ProfileOptions::kMaxSteps));
}

void check_loss_scale(const LossScale& s) {
  using Limits = std::numeric_limits<float>;  // the loss scale is an f32 variable
  if (!s.dynamic) {
    if (Limits::min() <= s.initial && s.initial <= Limits::max()) return;
    throw UserError(fmt::format("a loss scale of {} is outside the range of f32", s.initial));
  }
  const bool ordered = s.floor <= s.initial && s.initial <= s.ceiling;
  const bool in_range = Limits::min() <= s.floor && s.ceiling <= Limits::max();
  const bool moves = s.growth >= 1 && 0 < s.backoff && s.backoff <= 1 && s.interval > 0;
  if (ordered && in_range && moves) return;
  throw UserError(fmt::format(
      "a loss scale from {} in [{}, {}], x {} after {} good steps and x {} after a bad one, needs "
      "0 < floor <= initial <= ceiling within the range of f32, growth >= 1, 0 < backoff <= 1 and "
      "an interval above 0",
      s.initial, s.floor, s.ceiling, s.growth, s.interval, s.backoff));
}

}  // namespace

void check_amp(const ExecutorOptions& options) {
  if (!options.precision.amp) return;
  const AmpOptions& amp = *options.precision.amp;
  if (amp.dtype != DType::bf16 && amp.dtype != DType::f16) {
    throw UserError("mixed precision needs bf16 or f16, not " + std::string(name_of(amp.dtype)));
  }
  if (options.precision.dtype) {
    throw UserError("mixed precision and a whole program in " +
                    std::string(name_of(*options.precision.dtype)) + " exclude each other");
  }
  check_loss_scale(amp.loss_scale);
}

void check_sync_bn(const ExecutorOptions& options) {
  if (!options.distributed.sync_bn ||
      (options.distributed.world.size == 1 && !options.distributed.force_collectives))
    return;
  if (options.micro_batches > 1) {
    throw UserError("sync_bn does not support micro-batches");
  }
  if (options.debug.check_finite) {
    throw UserError("check_finite checks each rank alone, which sync_bn does not support");
  }
}

void check_options(const ExecutorOptions& options) {
  check_amp(options);
  check_sync_bn(options);
  if (options.profile) check_profile(*options.profile);
  if (options.threads < 0 || options.threads > kMaxThreads) {
    throw UserError(fmt::format("threads = {}: must be 1 to {}, or 0 for the default of OpenMP",
                                options.threads, kMaxThreads));
  }
  if (options.micro_batches < 1) {
    throw UserError(fmt::format("a step of {} micro-batches", options.micro_batches));
  }
  if (options.distributed.zero != 0 && options.distributed.zero != 1) {
    throw UserError(fmt::format("zero = {}: 1 shards the optimizer's state, 0 nothing",
                                options.distributed.zero));
  }
  if (options.batch < 0) throw UserError("a batch of " + std::to_string(options.batch));
  if (options.gpu.workspace < 0) {
    throw UserError(fmt::format("a workspace of {} bytes", options.gpu.workspace));
  }
}

}  // namespace fluid
