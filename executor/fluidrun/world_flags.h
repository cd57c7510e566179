#pragma once

#include <string>

#include "executor/executor.h"

namespace CLI {
class App;
}

namespace fluid {

/// What processes that train together send each other.
struct ExchangeFlags {
  std::string first = "1MiB", others = "25MiB";
  std::string dtype;  ///< "bf16" or "f16", in which gradients travel; empty: their own
  int zero = 0;       ///< 1: sums are shared out, and parameters put together again (ZeRO-1)
  bool sync_bn = false;
};
void add_exchange_flags(CLI::App& command, ExchangeFlags& flags);
/// Throws UserError for flags that are malformed.
void set_exchanges(ExecutorOptions& options, const ExchangeFlags& flags);

/// How the processes of a training run, started by `fluidrun launch`, torchrun or Slurm, work
/// together.
struct WorldFlags {
  double first_timeout = 300;      ///< seconds that it may be late for the first step
  double timeout = 60;             ///< seconds that a rank may be late
  bool force_collectives = false;  ///< ExecutorOptions::force_collectives
  ExchangeFlags exchanges;
};
void add_world_flags(CLI::App& command, WorldFlags& flags);

/// Makes the executor one of the world that this process's environment describes. Throws UserError
/// for flags that are malformed.
void set_world(ExecutorOptions& options, const WorldFlags& flags, const World& world);

}  // namespace fluid
