// Damages files of every format and reads them: each must be accepted or refused with one clear
// message, within 5 seconds of computing and (where nothing is sanitized) 256 MiB.
//   fuzz_formats [--count N | --brief N] [--seed S] [--only ATTACK] [--show 1]
// A failure prints the command that repeats it; --show 1 prints every message. --brief N is a count
// of N, or of 1,000 where FLUID_TEST_ALL is set: 5,000 .fluid files with changed bytes, 5,000 with
// changed structure, and 1,000 of every other kind.

#include <malloc.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#ifdef FLUID_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

#include "ir/error.h"
#include "ir/number.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/full_run.h"

namespace fluid::fuzz {
namespace {

constexpr int kSecondsAllowed = 5;       ///< CPU time
constexpr unsigned kSecondsWaited = 60;  ///< wall-clock time; more means a deadlock, not load
#ifdef FLUID_SANITIZED
constexpr bool kMemoryIsBounded = false;  ///< the sanitizer's quarantine keeps freed memory
#else
constexpr bool kMemoryIsBounded = true;
#endif
constexpr long kKiBAllowed = 256 << 10;
constexpr int kFullCount = 1000;

char g_running[160];  ///< the current attempt, for the signal handler

/// Says which attempt it was; write() is all that a signal handler may call.
void report(const char* what) {
  for (const char* text : {what, static_cast<const char*>(g_running)}) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(2);  // cannot report it
  }
}

void report_signal(int signal) {
  report(signal == SIGPROF || signal == SIGALRM ? "took too long: " : "crashed: ");
  _exit(1);
}

/// A sanitizer reports crashes itself; it then needs only to say which attempt it was.
void report_crashes() {
  for (const int signal : {SIGPROF, SIGALRM, SIGABRT}) std::signal(signal, report_signal);
#ifdef FLUID_SANITIZED
  __sanitizer_set_death_callback([] { report("crashed: "); });
#else
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, report_signal);
#endif
}

struct Settings {
  int count = 100;
  uint64_t seed = 1;
  std::string only;
  bool show = false;
};

template <class T>
T number_of(const std::string& text) {
  const std::optional<T> value = parse_number<T>(text);
  if (!value) throw UserError("'" + text + "' is no number");
  return *value;
}

Settings settings_of(const std::vector<std::string>& arguments) {
  Settings settings;
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    if (arguments[i] == "--count") settings.count = number_of<int>(arguments[i + 1]);
    if (arguments[i] == "--brief") {
      const int brief = number_of<int>(arguments[i + 1]);
      settings.count = testing::is_full_run() ? kFullCount : brief;
    }
    if (arguments[i] == "--seed") settings.seed = number_of<uint64_t>(arguments[i + 1]);
    if (arguments[i] == "--show") settings.show = number_of<int>(arguments[i + 1]) != 0;
    if (arguments[i] == "--only") settings.only = arguments[i + 1];
  }
  return settings;
}

/// The most memory that the process had since forget_peak(), in KiB.
long peak_kib() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) return std::atol(line.c_str() + std::strlen("VmHWM:"));
  }
  throw InternalError("/proc/self/status has no VmHWM");
}

/// SIGPROF and SIGALRM come unless this is called again in time; 0 takes them back.
void allow(int computing, unsigned waiting) {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = computing, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(waiting);
}

void forget_peak() {
  malloc_trim(0);  // memory freed by earlier attempts must not hide the use of this one
  std::ofstream("/proc/self/clear_refs") << 5;
}

struct Tally {
  int accepted = 0;
  int refused = 0;
  int failed = 0;
  double seconds = 0;  ///< slowest attempt
  long kib = 0;        ///< largest attempt
};

std::string fault_of_message(const std::string& message) {
  if (message.empty()) return "an empty message";
  if (message.find('\n') != std::string::npos) return "a message of several lines: " + message;
  return "";
}

/// Runs one attempt. Returns a description of the error, or "".
std::string run_one(const Attack& attack, uint64_t seed, bool show, Tally& tally) {
  Random random(seed);
  try {
    attack.attempt(random);
    ++tally.accepted;
  } catch (const UserError& e) {
    ++tally.refused;
    if (show) std::printf("%s\n", e.what());
    return fault_of_message(e.what());
  } catch (const std::exception& e) {
    return std::string("not a UserError: ") + e.what();
  }
  return "";
}

/// Like run_one(), with limits of time and memory.
std::string run_bounded(const Attack& attack, uint64_t seed, bool show, Tally& tally) {
  forget_peak();
  const long before = peak_kib();
  const std::clock_t start = std::clock();
  allow(kSecondsAllowed, kSecondsWaited);
  const std::string fault = run_one(attack, seed, show, tally);
  allow(0, 0);
  const long kib = peak_kib() - before;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  tally.seconds = std::max(tally.seconds, seconds);
  tally.kib = std::max(tally.kib, kib);
  if (!fault.empty() || !kMemoryIsBounded || kib <= kKiBAllowed) return fault;
  return "took " + std::to_string(kib >> 10) + " MiB";
}

bool run(const Attack& attack, const Settings& settings) {
  Tally tally;
  const int attempts = settings.count * attack.weight;
  for (int i = 0; i < attempts; ++i) {
    const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
    std::snprintf(g_running, sizeof g_running, "fuzz_formats --only %s --count 1 --seed %llu\n",
                  attack.name.c_str(), static_cast<unsigned long long>(seed));
    const std::string fault = run_bounded(attack, seed, settings.show, tally);
    if (fault.empty()) continue;
    ++tally.failed;
    std::fprintf(stderr, "%s\n  repeat: %s", fault.c_str(), g_running);
  }
  std::printf("%-16s %6d attempts: %6d accepted, %6d refused, %d failed; at most %.2f s, %ld MiB\n",
              attack.name.c_str(), attempts, tally.accepted, tally.refused, tally.failed,
              tally.seconds, tally.kib >> 10);
  return tally.failed == 0;
}

}  // namespace

std::string with_changed_bytes(std::string bytes, Random& random) {
  const bool in_place = below(random, 2) == 0;
  for (size_t changes = 1 + below(random, 4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = below(random, bytes.size());
    const size_t length = 1 + below(random, 8);
    switch (in_place ? 4 : below(random, 8)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(random, bytes.size()), 8 * length));
        break;
      case 3:
        bytes.insert(at, length, static_cast<char>(random()));
        break;
      default:
        bytes[at] = static_cast<char>(random());
    }
  }
  return bytes;
}

int main_of(const std::vector<std::string>& arguments) {
  report_crashes();
  const Settings settings = settings_of(arguments);
  bool good = true;
  for (const auto& attacks : {program_attacks(), data_attacks()}) {
    for (const Attack& attack : attacks) {
      if (settings.only.empty() || settings.only == attack.name) good &= run(attack, settings);
    }
  }
  return good ? 0 : 1;
}

}  // namespace fluid::fuzz

int main(int argc, char** argv) {
  try {
    return fluid::fuzz::main_of({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fuzz_formats: %s\n", e.what());
    return 2;
  }
}
