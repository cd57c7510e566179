#pragma once

namespace fluid {

/// While it lives, the first SIGINT or SIGTERM only sets a flag, a second one ends the program at
/// once, and SIGUSR1 asks to save. Also from an exception on, so that what went wrong can be said.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;

  static bool stop_asked();
  static bool take_save_asked();  ///< true once for each request
};

}  // namespace fluid
