#include "executor/fluidrun/signals.h"

#include <unistd.h>

#include <csignal>
#include <exception>

namespace fluid {
namespace {

volatile std::sig_atomic_t g_stop = 0;
volatile std::sig_atomic_t g_save = 0;

extern "C" void on_stop(int number) {
  if (g_stop != 0) _exit(128 + number);
  g_stop = 1;
}
extern "C" void on_save(int) { g_save = 1; }

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

Signals::Signals() {
  g_stop = 0;
  g_save = 0;
  handle(SIGINT, on_stop);
  handle(SIGTERM, on_stop);
  handle(SIGUSR1, on_save);
}

Signals::~Signals() {
  if (std::uncaught_exceptions() > 0) return;
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) handle(number, SIG_DFL);
}

bool Signals::stop_asked() { return g_stop != 0; }

bool Signals::take_save_asked() {
  const bool asked = g_save != 0;
  g_save = 0;
  return asked;
}

}  // namespace fluid
