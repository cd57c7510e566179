#include "executor/comm/store_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <utility>

#include "executor/comm/signals.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid::comm {

using Kind = Message::Kind;

Duration silence(Duration timeout) { return timeout / 2; }

Duration heartbeat_interval(Duration timeout) {
  return std::clamp(timeout / 20, Duration(20), Duration(1000));
}

StoreServer::StoreServer(const World& world, Duration timeout)
    : world_(world), timeout_(timeout), listener_(listen_at(world.master, world.port)) {
  ranks_.resize(static_cast<size_t>(world.size));
  check(pipe2(wake_, O_CLOEXEC) == 0, "a pipe can be made");
  SignalsBlocked guard(SignalsBlocked::Which::all);
  thread_ = start_thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  ::close(wake_[1]);
  thread_.join();
  ::close(wake_[0]);
}

void StoreServer::serve() {
  while (!ending_ || (has_present_ranks() && Clock::now() < *ending_)) {
    std::vector<pollfd> wanted = {{ending_ ? -1 : wake_[0], POLLIN, 0},
                                  {listener_.fd(), POLLIN, 0}};
    for (const Connection& c : connections_) {
      short events = c.out.empty() ? POLLIN : POLLIN | POLLOUT;
      wanted.push_back({c.socket.fd(), events, 0});
    }
    if (poll(wanted.data(), wanted.size(), poll_ms(next_deadline())) < 0) continue;
    if (wanted[0].revents != 0) {
      ending_ = Clock::now() + std::min(silence(timeout_), Duration(5000));
    }
    size_t next = 2;
    for (Connection& c : connections_) exchange(c, wanted[next++].revents);
    if (wanted[1].revents != 0) accept_all();
    for (Connection& c : connections_) {
      if (!c.waiting) continue;
      if (auto done = attempt(c, *c.waiting)) {
        c.waiting.reset();
        answer(c, *done);
      }
    }
    connections_.remove_if([](const Connection& c) { return c.closing; });
  }
}

bool StoreServer::has_present_ranks() const {
  // Every rank has been told.
  if (!verdict_.empty() || !user_error_.empty() || !absent_at_timeout_.empty()) return false;
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.state == Rank::State::present; });
}

Clock::time_point StoreServer::next_deadline() const {
  Clock::time_point next = ending_.value_or(Clock::now() + std::chrono::hours(1));
  for (const Connection& c : connections_) {
    if (c.waiting) next = std::min(next, c.deadline);
  }
  return next;
}

void StoreServer::accept_all() {
  while (true) {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    connections_.emplace_back().socket = std::move(socket);
  }
}

void StoreServer::exchange(Connection& connection, short ready) {
  if (ready == 0) return;
  if (ready & POLLOUT) {
    ssize_t n =
        ::send(connection.socket.fd(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (n > 0) connection.out.erase(0, static_cast<size_t>(n));
  }
  char bytes[4096];
  ssize_t n;
  while ((n = recv(connection.socket.fd(), bytes, sizeof bytes, 0)) > 0) {
    connection.in.append(bytes, static_cast<size_t>(n));
  }
  bool ended = n == 0 || (errno != EAGAIN && errno != EINTR);
  try {
    while (auto request = unpack(connection.in)) handle(connection, std::move(*request));
  } catch (const DeviceError&) {
    ended = true;  // an unrelated client; drop it and go on
  }
  if (ended) lose(connection);
}

void StoreServer::lose(Connection& connection) {
  connection.closing = true;
  connection.waiting.reset();
  if (connection.rank < 0) return;
  Rank& rank = ranks_[static_cast<size_t>(connection.rank)];
  if (rank.state != Rank::State::present) return;
  rank.state = Rank::State::gone;
  lost_.push_back(connection.rank);
  judge(missing(silence(timeout_)));
}

void StoreServer::handle(Connection& connection, Message request) {
  if (connection.rank < 0 && request.kind != Kind::hello) {
    connection.closing = true;
    return;
  }
  if (connection.rank >= 0) ranks_[static_cast<size_t>(connection.rank)].heard = Clock::now();
  connection.deadline = Clock::now() + (request.kind == Kind::barrier ? heartbeat_interval(timeout_)
                                                                      : Duration(request.number));
  if (request.kind == Kind::hello) {
    if (auto refusal = hello(connection, request)) return answer(connection, *refusal);
  }
  auto done = attempt(connection, request);
  if (done) return answer(connection, *done);
  connection.waiting = std::move(request);
}

std::optional<Message> StoreServer::hello(Connection& connection, const Message& request) {
  std::string job = fmt::format("{}/{}", world_.job, world_.restart);
  if (request.text != job) {
    return Message{Kind::refused, 0, "",
                   fmt::format("the store at port {} is that of another job or restart ('{}', this "
                               "process is of '{}'): choose another port",
                               world_.port, job, request.text)};
  }
  int rank = -1, size = 0;
  std::istringstream(request.value) >> rank >> size;
  if (size != world_.size) {
    user_error_ = fmt::format(
        "rank {} was started for a world of {} processes, but rank 0 for one of {}: start all "
        "ranks with the same size",
        rank, size, world_.size);
  } else if (rank < 0 || rank >= world_.size) {
    user_error_ = fmt::format("there is no rank {} in a world of {}", rank, world_.size);
  } else if (ranks_[static_cast<size_t>(rank)].state != Rank::State::absent) {
    user_error_ = fmt::format("two processes have rank {}", rank);
  } else {
    connection.rank = rank;
    ranks_[static_cast<size_t>(rank)] = {Rank::State::present, Clock::now(), 0};
  }
  return std::nullopt;
}

void StoreServer::answer(Connection& connection, const Message& message) {
  std::string bytes = pack(message);
  ssize_t n = 0;
  if (connection.out.empty()) {
    n = std::max<ssize_t>(0,
                          ::send(connection.socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  connection.out += bytes.substr(static_cast<size_t>(n));
}

std::optional<Message> StoreServer::attempt(const Connection& connection, const Message& request) {
  if (!user_error_.empty()) return Message{Kind::refused, 0, "", user_error_};
  bool late = Clock::now() >= connection.deadline;
  switch (request.kind) {
    case Kind::hello: {
      if (absent_at_timeout_.empty() && absent_ranks().empty()) return Message{};
      if (absent_at_timeout_.empty() && late) absent_at_timeout_ = absent_ranks();
      if (absent_at_timeout_.empty()) return std::nullopt;
      return Message{Kind::expired, 0, "", absent_at_timeout_};
    }
    case Kind::set:
      values_[request.text] = request.value;
      return Message{};
    case Kind::get: {
      auto it = values_.find(request.text);
      if (it != values_.end()) return Message{Kind::done, 0, "", it->second};
      if (late) return Message{Kind::expired, 0, "", request.text};
      return std::nullopt;
    }
    case Kind::add:
      return Message{Kind::done, sums_[request.text] += request.number, "", ""};
    case Kind::propose: {
      const auto [first, is_new] = proposed_.emplace(request.text, request.value);
      if (is_new) proposed_keys_.push_back(request.text);
      return Message{Kind::done, 0, "", first->second};
    }
    case Kind::proposal: {
      if (request.number < 0 || request.number >= std::ssize(proposed_keys_)) {
        return Message{Kind::expired, 0, "", ""};
      }
      const std::string& key = proposed_keys_[static_cast<size_t>(request.number)];
      return Message{Kind::done, 0, key, proposed_.at(key)};
    }
    case Kind::beat:
      ranks_[static_cast<size_t>(connection.rank)].entered = request.number;
      return Message{};
    case Kind::barrier: {
      int64_t& barrier = ranks_[static_cast<size_t>(connection.rank)].barrier;
      barrier = std::max(barrier, request.number);
      if (std::ranges::min(ranks_, {}, &Rank::barrier).barrier >= request.number) return Message{};
      judge(missing(timeout_));
      if (late || !verdict_.empty()) return Message{Kind::expired, 0, "", ""};
      return std::nullopt;
    }
    case Kind::verdict: {
      judge(late && request.text != kCertain ? likeliest(request.value)
                                             : missing(silence(timeout_)));
      if (verdict_.empty() && !late) return std::nullopt;
      return Message{Kind::done, 0, "", verdict_};
    }
    case Kind::leave: {
      Rank& rank = ranks_[static_cast<size_t>(connection.rank)];
      if (rank.state == Rank::State::present) lost_.push_back(connection.rank);
      rank.state = Rank::State::left;
      return Message{};
    }
    default:
      return Message{};
  }
}

std::string StoreServer::absent_ranks() const {
  std::string absent;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].state != Rank::State::absent) continue;
    absent += (absent.empty() ? "" : ", ") + std::to_string(i);
  }
  return absent;
}

void StoreServer::judge(const std::string& verdict) {
  if (verdict.empty() || !verdict_.empty()) return;
  verdict_ = verdict;
  // Push the verdict to all ranks now: rank 0 may exit as soon as it receives the verdict.
  for (Connection& c : connections_) {
    if (!c.closing) answer(c, {Kind::verdict, 0, "", verdict_});
  }
}

std::string StoreServer::missing(Duration silence) {
  // A rank that waits for the verdict sends no heartbeats, but it is alive.
  for (const Connection& c : connections_) {
    if (!c.waiting || c.waiting->kind != Kind::verdict) continue;
    ranks_[static_cast<size_t>(c.rank)].heard = Clock::now();
  }
  if (!lost_.empty()) {
    bool left = ranks_[static_cast<size_t>(lost_.front())].state == Rank::State::left;
    return fmt::format("rank {} has {}", lost_.front(),
                       left ? "left the group" : "ended: it was killed, or failed by itself");
  }
  const auto silent = std::ranges::min_element(ranks_, {}, &Rank::heard);
  const auto unheard = std::chrono::duration_cast<Duration>(Clock::now() - silent->heard);
  if (unheard <= silence) return "";
  return fmt::format("rank {} has been silent for {:.1f} s: it is stopped, or out of reach",
                     silent - ranks_.begin(), static_cast<double>(unheard.count()) / 1000);
}

std::string StoreServer::likeliest(const std::string& failed) {
  if (std::string gone = missing(4 * heartbeat_interval(timeout_)); !gone.empty()) return gone;
  const auto [behind, ahead] = std::ranges::minmax_element(ranks_, {}, &Rank::entered);
  int64_t number = ahead->entered - 1;
  if (!failed.empty()) std::istringstream(failed) >> number;
  if (behind->entered == ahead->entered || behind->entered > number) {
    return "every rank is alive: a connection between two ranks is broken";
  }
  return fmt::format("rank {} is late: it has entered {} collective operations, rank {} {}",
                     behind - ranks_.begin(), behind->entered, ahead - ranks_.begin(),
                     ahead->entered);
}

}  // namespace fluid::comm
