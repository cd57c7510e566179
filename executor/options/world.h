#pragma once

#include <map>
#include <string>

namespace fluid {

/// A group of processes that train one program, and this process's rank.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;                ///< among the processes of this host
  std::string master = "127.0.0.1";  ///< the host of rank 0
  int port = 0;                      ///< where rank 0 serves the store
  std::string job;                   ///< prefix of keys, so that jobs can share a port
  int restart = 0;                   ///< number of restarts of the job

  using Variables = std::map<std::string, std::string>;

  /// This process's environment.
  static Variables environment();
  /// From the environment: see from().
  static World from_env();

  /// Reads torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), else
  /// Slurm's; else returns a world of one. The port is FLUID_PORT, by default MASTER_PORT, or
  /// MASTER_PORT + 1 when torchrun itself listens there (TORCHELASTIC_USE_AGENT_STORE). Throws
  /// UserError for a value that is malformed, missing or contradicts another.
  static World from(const Variables& variables);
};

}  // namespace fluid
