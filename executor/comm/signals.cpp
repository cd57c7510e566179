#include "executor/comm/signals.h"

#include <ctime>

namespace fluid::comm {

ScopedSignalBlock::ScopedSignalBlock(SignalSet signals) : signals_(signals) {
  if (signals == SignalSet::all) {
    sigfillset(&blocked_);
  } else {
    sigemptyset(&blocked_);
    sigaddset(&blocked_, SIGPIPE);
  }
  pthread_sigmask(SIG_BLOCK, &blocked_, &before_);
}

ScopedSignalBlock::~ScopedSignalBlock() {
  if (signals_ == SignalSet::pipe && !sigismember(&before_, SIGPIPE)) {
    timespec at_once{};
    while (sigtimedwait(&blocked_, nullptr, &at_once) == SIGPIPE) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace fluid::comm
