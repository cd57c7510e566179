#include "executor/trainer/signals.h"

#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

namespace fluid {
namespace {

constexpr std::array kStops = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t g_stop = 0;
volatile std::sig_atomic_t g_save = 0;
volatile std::sig_atomic_t g_training = 0;

int g_living = 0;  ///< Signals objects
std::array<std::pair<int, struct sigaction>, kStops.size() + 1> g_before = {};

extern "C" void on_stop(int number) {
  if (g_stop != 0) _exit(128 + number);
  g_stop = number;
  if (g_training != 0) return;
  constexpr std::string_view kText = "stopped before the first step: there is nothing to save\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(128 + number);
}
extern "C" void on_save(int) { g_save = 1; }

/// Returns the action that was there before. As nohup leaves SIGHUP ignored, so it stays.
struct sigaction handle(int number, void (*handler)(int)) {
  struct sigaction before = {};
  sigaction(number, nullptr, &before);
  if (number == SIGHUP && before.sa_handler == SIG_IGN) return before;
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
  return before;
}

}  // namespace

Signals::Signals() {
  if (g_living++ > 0) return;
  g_stop = 0;
  g_save = 0;
  g_training = 0;
  for (size_t i = 0; i < kStops.size(); ++i) g_before[i] = {kStops[i], handle(kStops[i], on_stop)};
  g_before[kStops.size()] = {SIGUSR1, handle(SIGUSR1, on_save)};
  unblock();
}

Signals::~Signals() {
  if (--g_living > 0) return;
  g_stop = 0;
  g_save = 0;
  for (const auto& [number, action] : g_before) sigaction(number, &action, nullptr);
}

sigset_t Signals::blocked() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : kStops) sigaddset(&signals, number);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

void Signals::block() {
  const sigset_t signals = blocked();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

void Signals::unblock() {
  const sigset_t signals = blocked();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

void Signals::training_begins() { g_training = 1; }

int Signals::stop_signal() { return g_stop; }

bool Signals::take_save_requested() {
  const bool requested = g_save != 0;
  g_save = 0;
  return requested;
}

}  // namespace fluid
