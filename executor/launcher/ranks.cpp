#include "executor/launcher/ranks.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "executor/launcher/print_to.h"

namespace fluid {
namespace {

using Clock = std::chrono::steady_clock;

/// Time between a failure and SIGKILL for the other ranks. kSavingGracePeriod applies if the ranks
/// had already received a stop signal, because they may be saving.
constexpr std::chrono::seconds kGracePeriod{3}, kSavingGracePeriod{10};

/// Maximum time to wait for the exit of the rank at fault, after another rank has exited because it
/// lost its peer.
constexpr std::chrono::seconds kRootCauseWait{2};

/// Exit information of a process; nullopt while the process runs. Does not reap the process.
std::optional<siginfo_t> exit_info_of(pid_t pid) {
  siginfo_t info = {};
  int error;
  do {
    error = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  } while (error != 0 && errno == EINTR);
  if (error != 0 || info.si_pid == 0) return std::nullopt;
  return info;
}

/// The signal to send to the ranks when this process receives a stop signal. SIGHUP becomes
/// SIGTERM, because programs may ignore SIGHUP.
int forwarded_signal(int stop_signal) { return stop_signal == SIGHUP ? SIGTERM : stop_signal; }

/// Whether the rank exited with the exit code for a lost peer. A rank with a failed device has the
/// same exit code.
bool lost_peer(const siginfo_t& exit_info) {
  constexpr int kDeviceFailure = 3;  // exit code of fluidrun for a DeviceError
  return exit_info.si_code == CLD_EXITED && exit_info.si_status == kDeviceFailure;
}

/// Sort key for failed ranks; the rank with the smallest key is the likely root cause. 0: killed by
/// a signal. 1: exited with its own error. 2: lost its peer.
int root_cause_order(const siginfo_t& exit_info) {
  if (exit_info.si_code != CLD_EXITED) return 0;
  return lost_peer(exit_info) ? 2 : 1;
}

}  // namespace

std::string RankFailure::message() const {
  if (killed)
    return fmt::format("rank {} was killed by signal {} ({})", rank, status, strsignal(status));
  return fmt::format("rank {} ended with exit code {}", rank, status);
}

Ranks::Ranks(const std::vector<RankOptions>& options)
    : Ranks() {  // delegates, so that ~Ranks() runs if the body throws
  for (const RankOptions& rank : options) ranks_.emplace_back(rank);  // opens the log files
  auto rank = ranks_.begin();
  for (const RankOptions& rank_options : options) {
    const ChildProcess child = start_child(rank_options.command);
    rank->pid = child.pid;
    rank->output.set_pipes(child.out, child.err);
    ++rank;
  }
}

Ranks::~Ranks() {
  signal_all(SIGKILL);
  for (Rank& rank : ranks_) {
    if (rank.pid > 0) waitpid(rank.pid, nullptr, 0);
  }
}

std::optional<RankFailure> Ranks::run(SignalQueue& signals) {
  while (!all_finished()) {
    wait_for_events(signals);
    while (const std::optional<int> signal = signals.pop()) handle_signal(*signal);
    reap_exited_ranks();
    for (Rank& rank : ranks_) rank.output.forward(rank.pid < 0);
    if (kill_deadline_ && Clock::now() >= *kill_deadline_) {
      signal_all(SIGKILL);
      kill_deadline_.reset();
    }
  }
  if (failure_) failure_->last_lines = last_lines();
  return failure_;
}

/// Returns the last output lines of the failed rank. If a signal killed it, adds the lines of the
/// first rank that lost its peer, because these lines name the step. If the failed rank lost its
/// peer, adds the lines of other ranks that lost theirs, because one of them may name the cause.
/// Omits duplicate texts, and ranks that print to the terminal.
std::vector<LastLines> Ranks::last_lines() const {
  std::vector<LastLines> all;
  std::set<std::string> shown = {""};
  const auto show = [&](const Rank& rank) {
    const std::string text = rank.output.last_lines();
    if (shown.insert(text).second && !rank.on_terminal) {
      all.push_back({rank.rank, rank.output.log(), text});
    }
  };
  show(*failed_);
  if (failure_->killed && first_lost_peer_ != nullptr) show(*first_lost_peer_);
  for (const Rank& rank : ranks_) {
    if (rank.lost_peer && lost_peer(failed_exit_)) show(rank);
  }
  return all;
}

bool Ranks::all_finished() const {
  return std::ranges::all_of(
      ranks_, [](const Rank& rank) { return rank.pid < 0 && !rank.output.has_open_pipe(); });
}

void Ranks::wait_for_events(const SignalQueue& signals) const {
  std::vector<pollfd> events = {{signals.fd(), POLLIN, 0}};
  for (const Rank& rank : ranks_) rank.output.append_pollfds(events);
  int ms = -1;
  for (const auto& deadline : {kill_deadline_, root_cause_deadline_}) {
    if (!deadline) continue;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
    const int timeout = static_cast<int>(std::max<int64_t>(left, 0));
    ms = ms < 0 ? timeout : std::min(ms, timeout);
  }
  poll(events.data(), events.size(), ms);
}

void Ranks::handle_signal(int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGUSR1) return signal_all(signal);
  const bool again = received_stop_signal();
  if (!again) stop_signal_ = signal;
  if (again || failure_) {
    print_to(stderr, "fluidrun: killing all ranks\n");
    for (Rank& rank : ranks_) rank.output.detach_terminal();
    return signal_all(SIGKILL);
  }
  print_to(stderr, "fluidrun: stopping: the ranks may finish; another signal kills them\n");
  for (Rank& rank : ranks_) rank.output.ignore_terminal_errors();
  signal_all(forwarded_signal(signal));
}

/// Whether a rank exited with 128 + the stop signal, as `fluidrun train` does after saving.
bool Ranks::stopped_on_request(const siginfo_t& exit_info) const {
  if (!received_stop_signal() || exit_info.si_code != CLD_EXITED) return false;
  return exit_info.si_status == 128 + stop_signal_ ||
         exit_info.si_status == 128 + forwarded_signal(stop_signal_);
}

std::string Ranks::terminal_error() const {
  for (const Rank& rank : ranks_) {
    if (!rank.output.terminal_error().empty()) return rank.output.terminal_error();
  }
  return "";
}

void Ranks::reap_exited_ranks() {
  for (Rank& rank : ranks_) {
    const std::optional<siginfo_t> exit_info = rank.pid < 0 ? std::nullopt : exit_info_of(rank.pid);
    if (!exit_info) continue;
    kill(-rank.pid, SIGKILL);  // kills child processes that the rank left running
    waitpid(rank.pid, nullptr, 0);
    rank.pid = -1;
    if (exit_info->si_code == CLD_EXITED && exit_info->si_status == 0) continue;
    if (stopped_on_request(*exit_info)) {
      stopped_on_request_ = true;
      continue;
    }
    rank.lost_peer = lost_peer(*exit_info) && !failure_;
    if (first_lost_peer_ == nullptr && lost_peer(*exit_info)) first_lost_peer_ = &rank;
    if (failure_ ||
        (failed_ != nullptr && root_cause_order(*exit_info) >= root_cause_order(failed_exit_)))
      continue;
    failed_ = &rank;
    failed_exit_ = *exit_info;
  }
  if (failed_ == nullptr || failure_) return;
  if (!root_cause_deadline_) root_cause_deadline_ = Clock::now() + kRootCauseWait;
  if (!root_cause_may_be_running(failed_exit_) || Clock::now() >= *root_cause_deadline_)
    report_failure_and_stop_ranks();
}

/// Whether the failed rank exited because another rank closed its connection, and that rank may
/// still be running.
bool Ranks::root_cause_may_be_running(const siginfo_t& exit_info) const {
  return lost_peer(exit_info) &&
         std::ranges::any_of(ranks_, [](const Rank& r) { return r.pid > 0; });
}

void Ranks::report_failure_and_stop_ranks() {
  root_cause_deadline_.reset();
  failure_ = RankFailure{.rank = failed_->rank,
                         .killed = failed_exit_.si_code != CLD_EXITED,
                         .status = failed_exit_.si_status};
  const auto running = std::ranges::count_if(ranks_, [](const Rank& r) { return r.pid > 0; });
  const bool stopping = running > 0 && !received_stop_signal();
  print_to(stderr, "fluidrun: {}{}\n", failure_->message(),
           stopping ? "; stopping the others" : "");
  if (stopping) signal_all(SIGTERM);
  if (running > 0) kill_deadline_ = Clock::now() + (stopping ? kGracePeriod : kSavingGracePeriod);
}

void Ranks::signal_all(int signal) {
  for (const Rank& rank : ranks_) {
    if (rank.pid > 0) kill(-rank.pid, signal);
  }
}

}  // namespace fluid
