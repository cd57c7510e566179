#pragma once

#include <csignal>

namespace fluid {

/// Handles signals while it lives: SIGINT, SIGTERM and SIGHUP stop training, SIGUSR1 saves. SIGHUP
/// stays ignored in a process that was started with it ignored (nohup).
/// - Before training_begins() a stop signal ends the process with 128 + its number: there is
///   nothing to save yet.
/// - Afterwards the first stop signal sets a flag, and a second one ends the process.
/// - SIGUSR1 sets a flag at any time.
///
/// An object made while another one lives shares its handlers and flags. The last one to be
/// destroyed restores the previous handlers.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;

  /// Blocks these signals, so that none takes its default action before a Signals object exists.
  /// For a process that is going to train. The mask survives exec().
  static void block();
  static void unblock();      ///< undoes block()
  static sigset_t blocked();  ///< the signals that block() blocks

  static void training_begins();
  static bool stop_requested() { return stop_signal() != 0; }
  static int stop_signal();           ///< the first stop signal; 0: none came
  static bool take_save_requested();  ///< true once for each request
};

}  // namespace fluid
