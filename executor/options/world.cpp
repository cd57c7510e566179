#include "executor/options/world.h"

#include <unistd.h>

#include <charconv>
#include <limits>

#include "ir/error.h"

namespace fluid {

namespace {

constexpr int kMaxPort = 65535;

class EnvironmentReader {
 public:
  explicit EnvironmentReader(const World::EnvironmentVariables& variables)
      : variables_(variables) {}

  /// Whether the environment variable `name` is set and not empty.
  bool has(const std::string& name) const { return !text(name).empty(); }

  std::string text(const std::string& name) const {
    auto it = variables_.find(name);
    return it == variables_.end() ? "" : it->second;
  }

  int number(const std::string& name, int least, int most) const {
    std::string value = text(name);
    int n = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc() || end != value.data() + value.size() || n < least || n > most) {
      throw UserError(name + " is '" + value + "', which is not a whole number from " +
                      std::to_string(least) + " to " + std::to_string(most));
    }
    return n;
  }

  int number_or(const std::string& name, int fallback, int least, int most) const {
    return has(name) ? number(name, least, most) : fallback;
  }

  bool flag(const std::string& name) const {
    std::string value = text(name);
    if (value.empty() || value == "0" || value == "False" || value == "false") return false;
    if (value == "1" || value == "True" || value == "true") return true;
    throw UserError(name + " is '" + value + "', which is neither True nor False");
  }

 private:
  const World::EnvironmentVariables& variables_;
};

constexpr int kMaxInt = std::numeric_limits<int>::max();

/// Sets rank, size and local rank of `world` from the environment variables with the given names.
void read_ranks(const EnvironmentReader& env, const std::string& rank, const std::string& size,
                const std::string& local, World& world) {
  world.size = env.number_or(size, 1, 1, kMaxInt);
  world.rank = env.number(rank, 0, kMaxInt);
  world.local_rank = env.number_or(local, 0, 0, kMaxInt);
  for (const auto& [name, value] : {std::pair(rank, world.rank), {local, world.local_rank}}) {
    if (value >= world.size) {
      throw UserError(name + " is " + std::to_string(value) + ", but there are " +
                      std::to_string(world.size) + " processes by " + size +
                      ": ranks count from 0");
    }
  }
}

/// Throws UserError if the world has several processes and the environment variable `name` is not
/// set. `description`: describes the value of the variable in the message.
void require_variable(const EnvironmentReader& env, const World& world, const std::string& name,
                      const char* description) {
  if (world.size == 1 || env.has(name)) return;
  throw UserError("this is one of " + std::to_string(world.size) + " processes, but " + name +
                  " is not set: it names " + description);
}

World world_of_torchrun(const EnvironmentReader& env) {
  if (!env.has("RANK")) throw UserError("WORLD_SIZE is set, but RANK is not: set both or neither");
  if (!env.has("WORLD_SIZE")) {
    throw UserError("RANK is set, but WORLD_SIZE is not: set both or neither");
  }
  World world;
  read_ranks(env, "RANK", "WORLD_SIZE", "LOCAL_RANK", world);
  require_variable(env, world, "MASTER_ADDR", "the host of rank 0");
  world.master_host = env.has("MASTER_ADDR") ? env.text("MASTER_ADDR") : world.master_host;
  bool agent = env.flag("TORCHELASTIC_USE_AGENT_STORE");
  world.port = env.number_or("FLUID_PORT", 0, 1, kMaxPort);
  if (world.port == 0) {
    require_variable(env, world, "MASTER_PORT", "the port on which rank 0 waits for the others");
    world.port = env.number_or("MASTER_PORT", 0, 1, kMaxPort);
    if (agent && world.port == kMaxPort) {
      throw UserError(
          "torchrun listens at MASTER_PORT 65535 and there is no next port: set FLUID_PORT");
    }
    if (agent && world.port > 0) ++world.port;
  }
  world.job = env.text("TORCHELASTIC_RUN_ID");
  world.restart = env.number_or("TORCHELASTIC_RESTART_COUNT", 0, 0, kMaxInt);
  return world;
}

World world_of_slurm(const EnvironmentReader& env) {
  World world;
  read_ranks(env, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", world);
  std::string master = env.has("MASTER_ADDR") ? "MASTER_ADDR" : "SLURM_LAUNCH_NODE_IPADDR";
  require_variable(env, world, master, "the host of rank 0 (MASTER_ADDR goes before it)");
  world.master_host = env.has(master) ? env.text(master) : world.master_host;
  int id = env.number_or("SLURM_JOB_ID", 0, 0, kMaxInt);
  // The default port depends on the job id, so that consecutive jobs get different ports. The port
  // is below the ephemeral port range.
  int default_port = 20000 + id % 10000;
  world.port = env.number_or(env.has("FLUID_PORT") ? "FLUID_PORT" : "MASTER_PORT", default_port, 1,
                             kMaxPort);
  world.job = env.text("SLURM_JOB_ID") + "." + env.text("SLURM_STEP_ID");
  world.restart = env.number_or("SLURM_RESTART_COUNT", 0, 0, kMaxInt);
  return world;
}

}  // namespace

World World::from_environment(const EnvironmentVariables& variables) {
  EnvironmentReader env(variables);
  if (env.has("RANK") || env.has("WORLD_SIZE")) return world_of_torchrun(env);
  if (env.has("SLURM_PROCID")) return world_of_slurm(env);
  return {};
}

World::EnvironmentVariables World::environment() {
  EnvironmentVariables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

World World::from_env() { return from_environment(environment()); }

}  // namespace fluid
