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

int g_instances = 0;  ///< number of existing SignalHandlers objects
std::array<std::pair<int, struct sigaction>, kStops.size() + 1> g_previous_actions = {};

extern "C" void on_stop(int number) {
  if (g_stop != 0) _exit(128 + number);
  g_stop = number;
  if (g_training != 0) return;
  constexpr std::string_view kText = "stopped before the first step: there is nothing to save\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(128 + number);
}
extern "C" void on_save(int) { g_save = 1; }

/// Installs a signal handler and returns the previous action. Keeps an ignored SIGHUP ignored,
/// because nohup relies on this.
struct sigaction install_handler(int number, void (*handler)(int)) {
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

SignalHandlers::SignalHandlers() {
  if (g_instances++ > 0) return;
  g_stop = 0;
  g_save = 0;
  g_training = 0;
  for (size_t i = 0; i < kStops.size(); ++i)
    g_previous_actions[i] = {kStops[i], install_handler(kStops[i], on_stop)};
  g_previous_actions[kStops.size()] = {SIGUSR1, install_handler(SIGUSR1, on_save)};
  unblock();
}

SignalHandlers::~SignalHandlers() {
  if (--g_instances > 0) return;
  g_stop = 0;
  g_save = 0;
  for (const auto& [number, action] : g_previous_actions) sigaction(number, &action, nullptr);
}

sigset_t SignalHandlers::handled_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : kStops) sigaddset(&signals, number);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

void SignalHandlers::block() {
  const sigset_t signals = handled_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

void SignalHandlers::unblock() {
  const sigset_t signals = handled_signals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

void SignalHandlers::set_training_started() { g_training = 1; }

int SignalHandlers::stop_signal() { return g_stop; }

bool SignalHandlers::consume_save_request() {
  // An unconditional reset could lose a signal that arrives after the test.
  if (g_save == 0) return false;
  g_save = 0;
  return true;
}

}  // namespace fluid
