#pragma once

#include <map>
#include <string>

namespace fluid {

/// The processes that train one program together, and the rank of this process among them.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;                     ///< rank among the processes of this host
  std::string master_host = "127.0.0.1";  ///< host name or address of rank 0
  int port = 0;                           ///< port on which rank 0 serves the key-value store
  std::string job;                        ///< job id; prefixes the keys in the store
  int restart = 0;                        ///< number of times that the job was restarted

  /// Environment variables: name -> value.
  using EnvironmentVariables = std::map<std::string, std::string>;

  /// Returns the environment variables of this process.
  static EnvironmentVariables environment();
  /// Calls from_environment() with the environment variables of this process.
  static World from_env();

  /// Reads torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), or else
  /// Slurm's variables. Without either, returns a world of one process. The port is FLUID_PORT if
  /// set, else MASTER_PORT, or MASTER_PORT + 1 when torchrun itself listens on MASTER_PORT
  /// (TORCHELASTIC_USE_AGENT_STORE). If neither variable is set under Slurm, the port is derived
  /// from the job id. Throws UserError for malformed, missing or contradictory values.
  static World from_environment(const EnvironmentVariables& variables);
};

}  // namespace fluid
