#pragma once

#include <optional>

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

}  // namespace fluid
