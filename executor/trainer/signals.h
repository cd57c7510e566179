#pragma once

#include <csignal>

namespace fluid {

/// While it lives, the signals that stop training (SIGINT, SIGTERM and SIGHUP, unless the process
/// was started with SIGHUP ignored) and the one that saves (SIGUSR1) do this:
/// - before training_begins(), a signal to stop ends the program at once with 128 + its number, as
///   nothing was computed that could be saved;
/// - afterwards the first one only sets a flag, and a second one ends the program at once;
/// - SIGUSR1 sets a flag at any time.
/// SIGPIPE is ignored: a reader that goes away ends what it reads, not training. All of it holds
/// from an exception on, too, so that the failure can be reported.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;

  /// Blocks these signals until a Signals is made, in a process that is going to train: they then
  /// never do what they do by default. The mask survives exec().
  static void hold();
  static void release();   ///< undoes hold()
  static sigset_t held();  ///< what hold() blocks

  static void training_begins();
  static bool stop_asked() { return stop_signal() != 0; }
  static int stop_signal();       ///< the first signal to stop; 0: none came
  static bool take_save_asked();  ///< true once for each request
};

}  // namespace fluid
