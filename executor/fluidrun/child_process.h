#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace fluid {

/// While it lives, SIGINT, SIGTERM, SIGHUP (unless it is ignored), SIGUSR1 and SIGCHLD wait here
/// instead of being delivered. For a program of one thread.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;

  int fd() const { return fd_; }  ///< readable while one waits
  std::optional<int> take();      ///< the next one's number

 private:
  int fd_ = -1;
};

/// What to start: a program by its path, and its whole argv and environment ("NAME=value").
struct CommandLine {
  std::string path;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

struct ChildProcess {
  pid_t id = -1;
  int out = -1, err = -1;  ///< what it writes to its standard streams; reading does not block
};

/// Starts a process with no input, in a process group of its own, so that a terminal's Ctrl-C does
/// not reach it. It is killed when this process ends, however that ends. Throws DeviceError when
/// the system refuses.
ChildProcess start_child(const CommandLine& command);

/// A child's argv[0] until it has become the program: start_child() starts fluidrun itself, because
/// only a process can ask to be killed with its parent.
inline constexpr const char* kChildName = "fluidrun-child";

/// Whether a command line is that of `fluidrun train`, whose process holds back signals early.
bool will_train(char** argv);

/// What main() does under that name. Returns, with an exit code, only when it fails.
int become_program(char** argv);

}  // namespace fluid
