#pragma once

#include <csignal>

namespace fluid::comm {

/// While it lives, signals are blocked in this thread and in the threads that it starts.
class SignalsBlocked {
 public:
  enum class Which : unsigned char {
    all,   ///< for starting threads, so that the program's own threads handle its signals
    pipe,  ///< SIGPIPE, which writing to a peer that is gone raises; it is not delivered later
  };
  explicit SignalsBlocked(Which which);
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  Which which_;
  sigset_t blocked_, before_;
};

}  // namespace fluid::comm
