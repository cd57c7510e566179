#include "executor/fluidrun/ranks.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "executor/fluidrun/print_to.h"

namespace fluid {
namespace {

using Clock = std::chrono::steady_clock;

/// Time for the other ranks to exit after a failure; longer when they were asked to finish before,
/// as they may be saving.
constexpr std::chrono::seconds kGrace{3}, kGraceToFinish{10};

/// Time for the cause to exit, when the first rank to exit had missed a peer.
constexpr std::chrono::seconds kConsequence{2};

/// How process `id` ended; absent while it runs. Does not reap it.
std::optional<siginfo_t> ending_of(pid_t id) {
  siginfo_t info = {};
  int error;
  do {
    error = waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOHANG | WNOWAIT);
  } while (error != 0 && errno == EINTR);
  if (error != 0 || info.si_pid == 0) return std::nullopt;
  return info;
}

/// Programs that ignore SIGHUP still get SIGTERM.
int handed_on(int stop_signal) { return stop_signal == SIGHUP ? SIGTERM : stop_signal; }

bool misses_another(const siginfo_t& ending) {
  constexpr int kDeviceFailure = 3;  // fluidrun's exit code when a peer died, or its GPU failed
  return ending.si_code == CLD_EXITED && ending.si_status == kDeviceFailure;
}

/// Order of ranks that ended at once, the likely cause first: killed by a signal, then failed by
/// itself, then missed a peer.
int telling(const siginfo_t& ending) {
  if (ending.si_code != CLD_EXITED) return 0;
  return misses_another(ending) ? 2 : 1;
}

}  // namespace

std::string RankFailure::text() const {
  if (killed)
    return fmt::format("rank {} was killed by signal {} ({})", rank, number, strsignal(number));
  return fmt::format("rank {} ended with exit code {}", rank, number);
}

Ranks::Ranks(const std::vector<RankOptions>& options)
    : Ranks() {  // so that ~Ranks() follows a throw
  for (const RankOptions& rank : options) ranks_.emplace_back(rank);  // opens the logs
  auto rank = ranks_.begin();
  for (const RankOptions& one : options) {
    const ChildProcess child = start_child(one.command);
    rank->id = child.id;
    rank->output.read_from(child.out, child.err);
    ++rank;
  }
}

Ranks::~Ranks() {
  signal_all(SIGKILL);
  for (Rank& rank : ranks_) {
    if (rank.id > 0) waitpid(rank.id, nullptr, 0);
  }
}

std::optional<RankFailure> Ranks::run(SignalQueue& signals) {
  while (!over()) {
    wait(signals);
    while (const std::optional<int> signal = signals.take()) take(*signal);
    collect();
    for (Rank& rank : ranks_) rank.output.pass_on(rank.id < 0);
    if (deadline_ && Clock::now() >= *deadline_) {
      signal_all(SIGKILL);
      deadline_.reset();
    }
  }
  if (failure_) failure_->last_lines = last_lines();
  return failure_;
}

/// The last lines of the failed rank. If it was killed, adds the last lines of a rank that waited
/// for it, which name the step. If it gave up waiting for another rank, adds the last lines of all
/// ranks that gave up: one of them names the cause. Skips equal texts and the rank on the terminal.
std::vector<LastLines> Ranks::last_lines() const {
  std::vector<LastLines> all;
  std::set<std::string> said = {""};
  const auto show = [&](const Rank& rank) {
    const std::string text = rank.output.last_lines();
    if (said.insert(text).second && !rank.on_terminal) {
      all.push_back({rank.number, rank.output.log(), text});
    }
  };
  show(*failed_);
  if (failure_->killed && witness_ != nullptr) show(*witness_);
  for (const Rank& rank : ranks_) {
    if (rank.gave_up && misses_another(how_)) show(rank);
  }
  return all;
}

bool Ranks::over() const {
  return std::ranges::all_of(ranks_,
                             [](const Rank& rank) { return rank.id < 0 && !rank.output.open(); });
}

void Ranks::wait(const SignalQueue& signals) const {
  std::vector<pollfd> events = {{signals.fd(), POLLIN, 0}};
  for (const Rank& rank : ranks_) rank.output.wait_for(events);
  int ms = -1;
  for (const auto& until : {deadline_, verdict_}) {
    if (!until) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    const int least = static_cast<int>(std::max<int64_t>(left, 0));
    ms = ms < 0 ? least : std::min(ms, least);
  }
  poll(events.data(), events.size(), ms);
}

void Ranks::take(int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGUSR1) return signal_all(signal);
  const bool again = received_stop_signal();
  if (!again) stop_signal_ = signal;
  if (again || failure_) {
    print_to(stderr, "fluidrun: killing all ranks\n");
    for (Rank& rank : ranks_) rank.output.leave_terminal();
    return signal_all(SIGKILL);
  }
  print_to(stderr, "fluidrun: stopping: the ranks may finish; another signal kills them\n");
  for (Rank& rank : ranks_) rank.output.forgive_terminal();
  signal_all(handed_on(signal));
}

/// Whether the exit code is 128 + the stop signal, as after `train` has saved and stopped.
bool Ranks::stopped_on_request(const siginfo_t& ending) const {
  if (!received_stop_signal() || ending.si_code != CLD_EXITED) return false;
  return ending.si_status == 128 + stop_signal_ ||
         ending.si_status == 128 + handed_on(stop_signal_);
}

std::string Ranks::output_failure() const {
  for (const Rank& rank : ranks_) {
    if (!rank.output.failure().empty()) return rank.output.failure();
  }
  return "";
}

void Ranks::collect() {
  for (Rank& rank : ranks_) {
    const std::optional<siginfo_t> ending = rank.id < 0 ? std::nullopt : ending_of(rank.id);
    if (!ending) continue;
    kill(-rank.id, SIGKILL);  // the children that it left behind
    waitpid(rank.id, nullptr, 0);
    rank.id = -1;
    if (ending->si_code == CLD_EXITED && ending->si_status == 0) continue;
    if (stopped_on_request(*ending)) {
      stopped_on_request_ = true;
      continue;
    }
    rank.gave_up = misses_another(*ending) && !failure_;
    if (witness_ == nullptr && misses_another(*ending)) witness_ = &rank;
    if (failure_ || (failed_ != nullptr && telling(*ending) >= telling(how_))) continue;
    failed_ = &rank;
    how_ = *ending;
  }
  if (failed_ == nullptr || failure_) return;
  if (!verdict_) verdict_ = Clock::now() + kConsequence;
  if (!may_learn_cause(how_) || Clock::now() >= *verdict_) fail();
}

/// Whether a running rank may still turn out to be the cause.
bool Ranks::may_learn_cause(const siginfo_t& how) const {
  return misses_another(how) && std::ranges::any_of(ranks_, [](const Rank& r) { return r.id > 0; });
}

void Ranks::fail() {
  verdict_.reset();
  failure_ = RankFailure{
      .rank = failed_->number, .killed = how_.si_code != CLD_EXITED, .number = how_.si_status};
  const auto running = std::ranges::count_if(ranks_, [](const Rank& r) { return r.id > 0; });
  const bool stopping = running > 0 && !received_stop_signal();
  print_to(stderr, "fluidrun: {}{}\n", failure_->text(), stopping ? "; stopping the others" : "");
  if (stopping) signal_all(SIGTERM);
  if (running > 0) deadline_ = Clock::now() + (stopping ? kGrace : kGraceToFinish);
}

void Ranks::signal_all(int number) {
  for (const Rank& rank : ranks_) {
    if (rank.id > 0) kill(-rank.id, number);
  }
}

}  // namespace fluid
