#include "executor/fluidrun/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "ir/error.h"

namespace fluid {
namespace {

sigset_t queued() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&signals, number);
  struct sigaction hang_up = {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);  // ignored under nohup
  return signals;
}

}  // namespace

SignalQueue::SignalQueue() {
  const sigset_t signals = queued();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  fd_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  check(fd_ >= 0, "signals can be read");
}

SignalQueue::~SignalQueue() {
  const sigset_t signals = queued();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  close(fd_);
}

std::optional<int> SignalQueue::take() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace fluid
