#include "executor/fluidrun/signals.h"

#include <unistd.h>

#include <exception>
#include <string_view>

namespace fluid {
namespace {

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t g_stop = 0;
volatile std::sig_atomic_t g_save = 0;
volatile std::sig_atomic_t g_training = 0;

extern "C" void on_stop(int number) {
  if (g_stop != 0) _exit(128 + number);
  g_stop = number;
  if (g_training != 0) return;
  constexpr std::string_view kText = "stopped before the first step: there is nothing to save\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(128 + number);
}
extern "C" void on_save(int) { g_save = 1; }

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

/// As nohup leaves SIGHUP.
bool is_ignored(int number) {
  struct sigaction now = {};
  sigaction(number, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
  g_stop = 0;
  g_save = 0;
  g_training = 0;
  for (const int number : kStops) {
    if (number != SIGHUP || !is_ignored(number)) handle(number, on_stop);
  }
  handle(SIGUSR1, on_save);
  handle(SIGPIPE, SIG_IGN);
  release();
}

Signals::~Signals() {
  if (std::uncaught_exceptions() > 0) return;
  for (const int number : kStops) {
    if (!is_ignored(number)) handle(number, SIG_DFL);
  }
  handle(SIGUSR1, SIG_IGN);  // training is over, and what it saves is saved
}

sigset_t Signals::held() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : kStops) sigaddset(&signals, number);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

void Signals::hold() {
  const sigset_t signals = held();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

void Signals::release() {
  const sigset_t signals = held();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

void Signals::training_begins() { g_training = 1; }

int Signals::stop_signal() { return g_stop; }

bool Signals::take_save_asked() {
  const bool asked = g_save != 0;
  g_save = 0;
  return asked;
}

}  // namespace fluid
