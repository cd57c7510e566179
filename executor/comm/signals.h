#pragma once

#include <csignal>

namespace fluid::comm {

/// Blocks signals in the calling thread for the lifetime of the object. Threads started during this
/// time inherit the signal mask.
class ScopedSignalBlock {
 public:
  enum class SignalSet : unsigned char {
    all,
    pipe,  ///< SIGPIPE, raised by a write to a closed connection; a pending SIGPIPE is discarded
  };
  explicit ScopedSignalBlock(SignalSet signals);
  ~ScopedSignalBlock();
  ScopedSignalBlock(const ScopedSignalBlock&) = delete;
  ScopedSignalBlock& operator=(const ScopedSignalBlock&) = delete;

 private:
  SignalSet signals_;
  sigset_t blocked_, before_;
};

}  // namespace fluid::comm
