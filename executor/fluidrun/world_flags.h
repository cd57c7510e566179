#pragma once

#include <string>

#include "executor/executor.h"

namespace CLI {
class App;
}

namespace fluid {

/// How gradients are put together for messages between processes.
struct BucketFlags {
  std::string first = "1MiB", others = "25MiB";
  std::string dtype;  ///< "bf16" or "f16", in which gradients travel; empty: their own
  int zero = 0;       ///< 1: sums are shared out, and parameters put together again (ZeRO-1)
};
void add_bucket_flags(CLI::App& command, BucketFlags& flags);
/// Throws UserError for flags that are malformed.
Buckets buckets_of(const BucketFlags& flags);

/// How the processes of a training run, started by `fluidrun launch`, torchrun or Slurm, work
/// together.
struct WorldFlags {
  double first_timeout = 300;  ///< seconds that it may be late for the first step
  double timeout = 60;         ///< seconds that a rank may be late
  BucketFlags buckets;
  bool sync_bn = false;
};
void add_world_flags(CLI::App& command, WorldFlags& flags);

/// Makes the executor one of the world that this process's environment describes. Throws UserError
/// for flags that are malformed.
void set_world(ExecutorOptions& options, const WorldFlags& flags, const World& world);

}  // namespace fluid
