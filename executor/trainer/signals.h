#pragma once

#include <csignal>

namespace fluid {

/// Installs signal handlers for its lifetime. SIGINT, SIGTERM and SIGHUP stop training; SIGUSR1
/// requests a save. If the process was started with SIGHUP ignored (nohup), SIGHUP stays ignored.
/// - Before set_training_started(), a stop signal ends the process with exit code 128 + the signal
///   number, because there is nothing to save yet.
/// - After set_training_started(), the first stop signal sets a flag. A second stop signal ends the
///   process.
/// - SIGUSR1 sets a flag at any time.
///
/// Several objects share the handlers and flags. Destroying the last object restores the previous
/// handlers.
class SignalHandlers {
 public:
  SignalHandlers();
  ~SignalHandlers();
  SignalHandlers(const SignalHandlers&) = delete;

  /// Blocks handled_signals() until a SignalHandlers object is created, so that a signal does not
  /// end a process that is about to train. The signal mask survives exec().
  static void block();
  static void unblock();              ///< unblocks handled_signals()
  static sigset_t handled_signals();  ///< SIGINT, SIGTERM, SIGHUP and SIGUSR1

  static void set_training_started();
  static bool stop_requested() { return stop_signal() != 0; }
  static int stop_signal();            ///< number of the first stop signal received; 0: none
  static bool consume_save_request();  ///< whether SIGUSR1 was received since the last call
};

}  // namespace fluid
