#pragma once

#include <map>
#include <string>

namespace fluid {

/// The processes that run one program together, and which of them this one is.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;                ///< among the processes of this host
  std::string master = "127.0.0.1";  ///< the host of rank 0
  int port = 0;                      ///< where rank 0 serves the store
  std::string job;                   ///< tells jobs apart that meet at one port
  int restart = 0;                   ///< how often the job was started again

  using Variables = std::map<std::string, std::string>;

  /// This process's environment.
  static Variables environment();
  /// From the environment: see from().
  static World from_env();

  /// From RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, which torchrun sets; else from
  /// Slurm's variables; else a world of one. The port is FLUID_PORT; without it MASTER_PORT, or the
  /// next one where TORCHELASTIC_USE_AGENT_STORE says that torchrun listens there itself. Throws
  /// UserError for a value that is malformed, missing or contradicts another.
  static World from(const Variables& variables);
};

}  // namespace fluid
