#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace fluid {

/// A queue of signals for single-threaded programs. While the object exists, SIGINT, SIGTERM,
/// SIGHUP (unless ignored), SIGUSR1 and SIGCHLD are blocked, and received through a signalfd.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;

  int fd() const { return fd_; }  ///< the signalfd; readable while a signal is queued
  std::optional<int> pop();  ///< removes and returns the next signal; nullopt if none is queued

 private:
  int fd_ = -1;
};

/// A program's path, its argv, and its environment variables ("NAME=value").
struct CommandLine {
  std::string path;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

/// A running child process.
struct ChildProcess {
  pid_t pid = -1;
  int out = -1, err = -1;  ///< non-blocking read ends of the child's stdout and stderr pipes
};

/// Starts a child process with /dev/null as its stdin. Puts the child into its own process group,
/// so that Ctrl-C in the terminal does not reach the child. The operating system kills the child
/// when this process exits. Throws DeviceError if a system call fails.
ChildProcess start_child(const CommandLine& command);

/// argv[0] of a child process before exec(). start_child() starts fluidrun itself under this name.
/// The child calls prctl(PR_SET_PDEATHSIG), which the parent cannot call for it, and then exec().
inline constexpr const char* kChildName = "fluidrun-child";

/// Whether `argv` is a command line of `fluidrun train`. A training process blocks its signals from
/// the start.
bool is_train_command(char** argv);

/// main() of a process whose argv[0] is kChildName. Calls exec() for the program in `argv`. Returns
/// only on failure, with an exit code.
int exec_program(char** argv);

}  // namespace fluid
