#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace fluid {

/// Queues SIGINT, SIGTERM, SIGHUP (unless it is ignored), SIGUSR1 and SIGCHLD instead of their
/// delivery, while it lives. For programs of one thread.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;

  int fd() const { return fd_; }  ///< readable while a signal is queued
  std::optional<int> take();      ///< the number of the next queued signal

 private:
  int fd_ = -1;
};

/// A program's path, its argv, and its environment ("NAME=value").
struct CommandLine {
  std::string path;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

struct ChildProcess {
  pid_t id = -1;
  int out = -1, err = -1;  ///< non-blocking read ends of its standard streams
};

/// Starts a process with empty stdin, in a process group of its own, which a terminal's Ctrl-C does
/// not reach. The kernel kills it when this process ends. Throws DeviceError when the system fails.
ChildProcess start_child(const CommandLine& command);

/// argv[0] of a child before it executes the program: start_child() starts fluidrun itself, because
/// only the child can call prctl(PR_SET_PDEATHSIG).
inline constexpr const char* kChildName = "fluidrun-child";

/// Whether `argv` is a command line of `fluidrun train`, whose process blocks signals early.
bool will_train(char** argv);

/// main() under the name kChildName. Returns an exit code only on failure.
int become_program(char** argv);

}  // namespace fluid
