#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "executor/options/world.h"

namespace fluid::testing {

/// A port of the loopback interface that is free at the moment.
int free_port();

/// A world of `size` on the loopback interface, as rank 0 sees it.
World loopback_world(int size);

/// Processes forked from this one, one per rank. The destructor kills those that still run.
class Ranks {
 public:
  using Body = std::function<std::string(const World&)>;

  /// Starts `size` processes; each calls `body`, and what it returns, or the text of what it throws
  /// after "UserError: " or "DeviceError: ", is its result.
  Ranks(int size, const Body& body) : Ranks(loopback_world(size), size, body) {}
  /// Starts `count` processes that think they are of `world`.
  Ranks(World world, int count, const Body& body);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void signal(int rank, int number);
  /// Returns the first line that the rank wrote with `say`; fails the test after 60 s.
  std::string line(int rank);
  /// Everything that the process wrote until it ended; fails the test after 60 s.
  std::string result(int rank);
  std::vector<std::string> results();

 private:
  struct Process {
    pid_t id;
    int output;
    std::string text;
  };
  /// Reads more of what a process writes; false at the end of it.
  bool read_more(Process& process);

  std::vector<Process> processes_;
};

/// Writes a line that Ranks::line returns; for the body of a rank.
void say(const std::string& line);

}  // namespace fluid::testing
