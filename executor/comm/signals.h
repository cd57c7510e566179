#pragma once

#include <csignal>

namespace fluid::comm {

/// Blocks signals in this thread, and in threads it starts, until destroyed.
class SignalsBlocked {
 public:
  enum class Which : unsigned char {
    all,   ///< for starting threads: signals are then handled on the program's own threads
    pipe,  ///< SIGPIPE, raised by writing to a closed connection; it is discarded
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
