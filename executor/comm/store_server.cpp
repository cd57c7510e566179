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

Duration heartbeat_timeout(Duration timeout) { return timeout / 2; }

Duration heartbeat_interval(Duration timeout) {
  return std::clamp(timeout / 20, Duration(20), Duration(1000));
}

StoreServer::StoreServer(const World& world, Duration timeout)
    : world_(world), timeout_(timeout), listener_(listen_at(world.master_host, world.port)) {
  ranks_.resize(static_cast<size_t>(world.size));
  check(pipe2(wake_, O_CLOEXEC) == 0, "a pipe can be made");
  ScopedSignalBlock guard(ScopedSignalBlock::SignalSet::all);
  thread_ = start_thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  ::close(wake_[1]);
  thread_.join();
  ::close(wake_[0]);
}

void StoreServer::serve() {
  while (!shutdown_deadline_ || (has_present_ranks() && Clock::now() < *shutdown_deadline_)) {
    std::vector<pollfd> wanted = {{shutdown_deadline_ ? -1 : wake_[0], POLLIN, 0},
                                  {listener_.fd(), POLLIN, 0}};
    for (const Connection& c : connections_) {
      short events = c.out.empty() ? POLLIN : POLLIN | POLLOUT;
      wanted.push_back({c.socket.fd(), events, 0});
    }
    if (poll(wanted.data(), wanted.size(), poll_timeout_ms(next_deadline())) < 0) continue;
    if (wanted[0].revents != 0) {
      shutdown_deadline_ = Clock::now() + std::min(heartbeat_timeout(timeout_), Duration(5000));
    }
    size_t next = 2;
    for (Connection& c : connections_) handle_io(c, wanted[next++].revents);
    if (wanted[1].revents != 0) accept_connections();
    for (Connection& c : connections_) {
      if (!c.waiting) continue;
      if (auto done = try_respond(c, *c.waiting)) {
        c.waiting.reset();
        send_response(c, *done);
      }
    }
    connections_.remove_if([](const Connection& c) { return c.closing; });
  }
}

bool StoreServer::has_present_ranks() const {
  // After a failure, do not wait for any rank: the server has sent the error or the diagnosis to
  // all ranks.
  if (!diagnosis_.empty() || !user_error_.empty() || !absent_at_timeout_.empty()) return false;
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.state == Rank::State::present; });
}

Clock::time_point StoreServer::next_deadline() const {
  Clock::time_point next = shutdown_deadline_.value_or(Clock::now() + std::chrono::hours(1));
  for (const Connection& c : connections_) {
    if (c.waiting) next = std::min(next, c.deadline);
  }
  return next;
}

void StoreServer::accept_connections() {
  while (true) {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    connections_.emplace_back().socket = std::move(socket);
  }
}

void StoreServer::handle_io(Connection& connection, short revents) {
  if (revents == 0) return;
  if (revents & POLLOUT) {
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
    while (auto request = unpack(connection.in)) handle_request(connection, std::move(*request));
  } catch (const DeviceError&) {
    ended = true;  // malformed bytes: the client is not a rank of this program
  }
  if (ended) drop_connection(connection);
}

void StoreServer::drop_connection(Connection& connection) {
  connection.closing = true;
  connection.waiting.reset();
  if (connection.rank < 0) return;
  Rank& rank = ranks_[static_cast<size_t>(connection.rank)];
  if (rank.state != Rank::State::present) return;
  rank.state = Rank::State::died;
  departed_ranks_.push_back(connection.rank);
  publish_diagnosis(describe_dead_rank(heartbeat_timeout(timeout_)));
}

void StoreServer::handle_request(Connection& connection, Message request) {
  if (connection.rank < 0 && request.kind != Kind::hello) {
    connection.closing = true;
    return;
  }
  if (connection.rank >= 0) ranks_[static_cast<size_t>(connection.rank)].last_heard = Clock::now();
  connection.deadline = Clock::now() + (request.kind == Kind::barrier ? heartbeat_interval(timeout_)
                                                                      : Duration(request.number));
  if (request.kind == Kind::hello) {
    if (auto error = register_rank(connection, request)) return send_response(connection, *error);
    if (connection.closing) return;
  }
  auto done = try_respond(connection, request);
  if (done) return send_response(connection, *done);
  connection.waiting = std::move(request);
}

std::optional<Message> StoreServer::register_rank(Connection& connection, const Message& request) {
  std::string job = fmt::format("{}/{}", world_.job, world_.restart);
  if (request.text != job) {
    return Message{Kind::user_error, 0, "",
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
  } else if (ranks_[static_cast<size_t>(rank)].state == Rank::State::left) {
    connection.closing = true;  // the server still serves the previous store: the rank has to retry
  } else if (ranks_[static_cast<size_t>(rank)].state != Rank::State::absent) {
    user_error_ = fmt::format("two processes have rank {}", rank);
  } else {
    connection.rank = rank;
    ranks_[static_cast<size_t>(rank)] = {Rank::State::present, Clock::now(), 0};
  }
  return std::nullopt;
}

void StoreServer::send_response(Connection& connection, const Message& message) {
  std::string bytes = pack(message);
  ssize_t n = 0;
  if (connection.out.empty()) {
    n = std::max<ssize_t>(0,
                          ::send(connection.socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  connection.out += bytes.substr(static_cast<size_t>(n));
}

std::optional<Message> StoreServer::try_respond(const Connection& connection,
                                                const Message& request) {
  if (!user_error_.empty()) return Message{Kind::user_error, 0, "", user_error_};
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
      return Message{Kind::done, counters_[request.text] += request.number, "", ""};
    case Kind::propose: {
      const auto [first, is_new] = proposals_.emplace(request.text, request.value);
      if (is_new) proposal_keys_.push_back(request.text);
      return Message{Kind::done, 0, "", first->second};
    }
    case Kind::proposal: {
      if (request.number < 0 || request.number >= std::ssize(proposal_keys_)) {
        return Message{Kind::expired, 0, "", ""};
      }
      const std::string& key = proposal_keys_[static_cast<size_t>(request.number)];
      return Message{Kind::done, 0, key, proposals_.at(key)};
    }
    case Kind::heartbeat:
      ranks_[static_cast<size_t>(connection.rank)].collectives_started = request.number;
      return Message{};
    case Kind::barrier: {
      int64_t& barrier = ranks_[static_cast<size_t>(connection.rank)].barrier;
      barrier = std::max(barrier, request.number);
      if (std::ranges::min(ranks_, {}, &Rank::barrier).barrier >= request.number) return Message{};
      publish_diagnosis(describe_dead_rank(timeout_));
      if (late || !diagnosis_.empty()) return Message{Kind::expired, 0, "", ""};
      return std::nullopt;
    }
    case Kind::diagnosis: {
      publish_diagnosis(late && request.text != kOnlyIfCertain
                            ? describe_suspect_rank(request.value)
                            : describe_dead_rank(heartbeat_timeout(timeout_)));
      if (diagnosis_.empty() && !late) return std::nullopt;
      return Message{Kind::done, 0, "", diagnosis_};
    }
    case Kind::leave: {
      Rank& rank = ranks_[static_cast<size_t>(connection.rank)];
      if (rank.state == Rank::State::present) departed_ranks_.push_back(connection.rank);
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

void StoreServer::publish_diagnosis(const std::string& diagnosis) {
  if (diagnosis.empty() || !diagnosis_.empty()) return;
  diagnosis_ = diagnosis;
  // Push the diagnosis to all ranks now: rank 0 may exit as soon as it receives the diagnosis.
  for (Connection& c : connections_) {
    if (!c.closing) send_response(c, {Kind::diagnosis, 0, "", diagnosis_});
  }
}

std::string StoreServer::describe_dead_rank(Duration max_silence) {
  // A rank that waits for a diagnosis sends no heartbeats, but is alive.
  for (const Connection& c : connections_) {
    if (!c.waiting || c.waiting->kind != Kind::diagnosis) continue;
    ranks_[static_cast<size_t>(c.rank)].last_heard = Clock::now();
  }
  if (!departed_ranks_.empty()) {
    bool left = ranks_[static_cast<size_t>(departed_ranks_.front())].state == Rank::State::left;
    return fmt::format("rank {} has {}", departed_ranks_.front(),
                       left ? "left the group" : "ended: it was killed, or failed by itself");
  }
  const auto silent = std::ranges::min_element(ranks_, {}, &Rank::last_heard);
  const auto unheard = std::chrono::duration_cast<Duration>(Clock::now() - silent->last_heard);
  if (unheard <= max_silence) return "";
  return fmt::format("rank {} has been silent for {:.1f} s: it is stopped, or out of reach",
                     silent - ranks_.begin(), static_cast<double>(unheard.count()) / 1000);
}

std::string StoreServer::describe_suspect_rank(const std::string& failed) {
  if (std::string dead = describe_dead_rank(4 * heartbeat_interval(timeout_)); !dead.empty())
    return dead;
  const auto [behind, ahead] = std::ranges::minmax_element(ranks_, {}, &Rank::collectives_started);
  int64_t number = ahead->collectives_started - 1;
  if (!failed.empty()) std::istringstream(failed) >> number;
  if (behind->collectives_started == ahead->collectives_started ||
      behind->collectives_started > number) {
    return "every rank is alive: a connection between two ranks is broken";
  }
  return fmt::format("rank {} is late: it has entered {} collective operations, rank {} {}",
                     behind - ranks_.begin(), behind->collectives_started, ahead - ranks_.begin(),
                     ahead->collectives_started);
}

}  // namespace fluid::comm
