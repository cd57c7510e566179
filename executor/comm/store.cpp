#include "executor/comm/store.h"

#include <fmt/format.h>

#include <thread>

#include "ir/error.h"

namespace fluid::comm {

using Kind = Message::Kind;

namespace {

/// Maximum time until rank 0 responds to a request that does not depend on other ranks. Allows for
/// delays while rank 0 is busy.
Duration response_time_limit(Duration timeout) {
  return heartbeat_timeout(timeout) + Duration(100);
}

/// Additional wait for the responses to heartbeat and barrier requests. The total wait is
/// approximately `timeout`; after it, rank 0 counts as unreachable.
Duration extra_response_time(Duration timeout) { return timeout - heartbeat_timeout(timeout); }

}  // namespace

void Store::set_timeout(Duration timeout) {
  timeout_ = timeout;
  if (server_) server_->set_timeout(timeout);
}

Store::Store(const World& world, Duration timeout) : world_(world), timeout_(timeout) {
  Clock::time_point deadline = Clock::now() + timeout;
  if (world.rank == 0) server_ = std::make_unique<StoreServer>(world, timeout);
  std::optional<Message> joined;
  while (!(joined = try_join(deadline)) && Clock::now() < deadline) {
    std::this_thread::sleep_for(Duration(20));
  }
  if (!joined) throw DeviceError("the store does not answer: " + diagnose(Duration(0)));
  if (joined->kind == Kind::user_error) throw UserError(joined->value);
  if (joined->kind == Kind::expired) {
    throw DeviceError(fmt::format(
        "rank {} of {} did not join within {} s: start all ranks with the same address, port and "
        "size",
        joined->value, world.size, static_cast<double>(timeout.count()) / 1000));
  }
}

std::optional<Message> Store::try_join(Clock::time_point deadline) {
  socket_ = connect_to(world_.master_host, world_.port, deadline);
  server_unreachable_ = false;
  diagnosis_.clear();
  buffer_.clear();
  const Duration left(poll_timeout_ms(deadline));
  return round_trip({Kind::hello, left.count(), fmt::format("{}/{}", world_.job, world_.restart),
                     fmt::format("{} {}", world_.rank, world_.size)},
                    left);
}

Store::~Store() {
  std::lock_guard lock(mutex_);
  round_trip({Kind::leave, 0, "", ""}, Duration(0));
}

void Store::set(const std::string& key, const std::string& value) {
  request_or_throw({Kind::set, 0, key, value}, Duration(0));
}

std::string Store::get(const std::string& key) {
  Message found = request_or_throw({Kind::get, timeout().count(), key, ""}, timeout_);
  if (found.kind == Kind::expired) {
    throw DeviceError("no rank has set '" + key +
                      "' in the store in time: " + diagnose(Duration(0)));
  }
  return found.value;
}

int64_t Store::add(const std::string& key, int64_t n) {
  return request_or_throw({Kind::add, n, key, ""}, Duration(0)).number;
}

std::string Store::propose(const std::string& key, const std::string& value) {
  return request_or_throw({Kind::propose, 0, key, value}, Duration(0)).value;
}

std::optional<std::pair<std::string, std::string>> Store::proposal(int64_t index) {
  Message found = request_or_throw({Kind::proposal, index, "", ""}, Duration(0));
  if (found.kind == Kind::expired) return std::nullopt;
  return std::pair(std::move(found.text), std::move(found.value));
}

void Store::barrier(Duration max_wait) {
  const Clock::time_point deadline = Clock::now() + max_wait;
  const int64_t number = ++barriers_entered_;
  while (request_or_throw({Kind::barrier, number, "", ""}, extra_response_time(timeout_)).kind ==
         Kind::expired) {
    if (Clock::now() >= deadline || has_failed()) throw DeviceError(diagnose(Duration(0)));
  }
}

void Store::send_heartbeat(int64_t collectives_started) {
  std::lock_guard lock(mutex_);
  round_trip({Kind::heartbeat, collectives_started, "", ""}, extra_response_time(timeout_));
}

std::string Store::diagnose(Duration wait, std::optional<int64_t> failed) {
  std::lock_guard lock(mutex_);
  if (diagnosis_.empty()) {
    const std::string in = failed ? std::to_string(*failed) : "";
    auto response = round_trip({Kind::diagnosis, wait.count(), "", in}, wait);
    if (diagnosis_.empty()) {
      diagnosis_ = response && response->kind == Kind::done
                       ? response->value
                       : "rank 0, which serves the store, has ended, is stopped or is out of reach";
    }
  }
  return diagnosis_;
}

std::string Store::diagnose_if_certain(Duration wait) {
  std::lock_guard lock(mutex_);
  if (diagnosis_.empty()) {
    const auto response = round_trip({Kind::diagnosis, wait.count(), kOnlyIfCertain, ""}, wait);
    if (response && response->kind == Kind::done) diagnosis_ = response->value;
  }
  return diagnosis_;
}

bool Store::has_failed() {
  std::lock_guard lock(mutex_);
  return server_unreachable_ || !diagnosis_.empty();
}

Message Store::request_or_throw(const Message& request, Duration wait) {
  std::unique_lock lock(mutex_);
  auto response = round_trip(request, wait);
  lock.unlock();
  if (!response) throw DeviceError("the store does not answer: " + diagnose(Duration(0)));
  if (response->kind == Kind::user_error) throw UserError(response->value);
  return *response;
}

std::optional<Message> Store::round_trip(const Message& request, Duration wait) {
  Clock::time_point deadline = Clock::now() + wait + response_time_limit(timeout_);
  if (server_unreachable_) return std::nullopt;
  bool sent = send(socket_, request, deadline);
  // Receive even if the send failed: rank 0 may have sent a diagnosis before it exited.
  while (auto response = receive(socket_, buffer_, deadline)) {
    if (response->kind != Kind::diagnosis && sent) return response;
    diagnosis_ = response->value;
  }
  server_unreachable_ = true;
  return std::nullopt;
}

}  // namespace fluid::comm
