#include "executor/session/session_options.h"

#include "codegen/object_cache.h"
#include "executor/device/bytes_text.h"

namespace fluid {
namespace {

Options pass_options(const ExecutorOptions& options) {
  Options o;
  o.dtype = options.precision.dtype;
  o.amp = options.precision.amp;
  o.world = options.distributed.world.size;
  o.force_collectives = options.distributed.force_collectives;
  o.scale_partial_loss = options.micro_batches > 1 || o.uses_collectives();
  o.rank = options.distributed.world.rank;
  o.shard_optimizer = options.distributed.zero > 0 && o.uses_collectives();
  o.buckets = options.distributed.buckets;
  o.sync_bn = options.distributed.sync_bn;
  o.check_finite = options.debug.check_finite;
  o.fuse = options.debug.fuse;
  o.use_libraries = options.debug.libraries;
  o.tf32 = options.gpu.tf32;
  o.guard_plan = o.verify_each = options.debug.verify_plan;
  return o;
}

MemoryLimit asked_limit(int64_t bytes) {
  return {bytes, "the limit is " + bytes_text(static_cast<double>(bytes)), true};
}

}  // namespace

SessionOptions session_options(const ExecutorOptions& options, Place place) {
  return {.seed = options.seed,
          .passes = pass_options(options),
          .prefetch = options.gpu.prefetch,
          .micro_batches = options.micro_batches,
          .kernel_cache_dir = ObjectCache::kernel_cache_directory(options.cache_dir),
          .memory =
              options.memory_limit > 0 ? asked_limit(options.memory_limit) : memory_limit_of(place),
          .profile = options.profile,
          .find_sample = options.find_sample};
}

}  // namespace fluid
