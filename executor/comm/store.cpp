#include "executor/comm/store.h"

#include <fmt/format.h>

#include "ir/error.h"

namespace fluid::comm {

using Kind = Message::Kind;

namespace {

/// Longest delay of an answer that rank 0 gives at once, however busy it is.
Duration grace(Duration timeout) { return silence(timeout) + Duration(100); }

/// With grace() it adds up to the time-out, so a rank 0 that is late by less is not given up.
Duration stall(Duration timeout) { return timeout - silence(timeout); }

}  // namespace

void Store::set_timeout(Duration timeout) {
  timeout_ = timeout;
  if (server_) server_->set_timeout(timeout);
}

Store::Store(const World& world, Duration timeout) : world_(world), timeout_(timeout) {
  Clock::time_point deadline = Clock::now() + timeout;
  if (world.rank == 0) server_ = std::make_unique<StoreServer>(world, timeout);
  socket_ = connect_to(world.master, world.port, deadline);
  Duration left(poll_ms(deadline));
  Message met = ask({Kind::hello, left.count(), fmt::format("{}/{}", world.job, world.restart),
                     fmt::format("{} {}", world.rank, world.size)},
                    left);
  if (met.kind == Kind::expired) {
    throw DeviceError(fmt::format(
        "rank {} of {} did not join within {} s: start all ranks with the same address, port and "
        "size",
        met.value, world.size, static_cast<double>(timeout.count()) / 1000));
  }
}

Store::~Store() {
  std::lock_guard lock(mutex_);
  exchange({Kind::leave, 0, "", ""}, Duration(0));
}

void Store::set(const std::string& key, const std::string& value) {
  ask({Kind::set, 0, key, value}, Duration(0));
}

std::string Store::get(const std::string& key) {
  Message found = ask({Kind::get, timeout().count(), key, ""}, timeout_);
  if (found.kind == Kind::expired) {
    throw DeviceError("no rank has set '" + key +
                      "' in the store in time: " + verdict(Duration(0)));
  }
  return found.value;
}

int64_t Store::add(const std::string& key, int64_t n) {
  return ask({Kind::add, n, key, ""}, Duration(0)).number;
}

std::string Store::propose(const std::string& key, const std::string& value) {
  return ask({Kind::propose, 0, key, value}, Duration(0)).value;
}

std::optional<std::pair<std::string, std::string>> Store::proposal(int64_t number) {
  Message found = ask({Kind::proposal, number, "", ""}, Duration(0));
  if (found.kind == Kind::expired) return std::nullopt;
  return std::pair(std::move(found.text), std::move(found.value));
}

void Store::barrier(Duration patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  const int64_t number = ++barriers_;
  while (ask({Kind::barrier, number, "", ""}, stall(timeout_)).kind == Kind::expired) {
    if (Clock::now() >= deadline || failed()) throw DeviceError(verdict(Duration(0)));
  }
}

void Store::beat(int64_t entered) {
  std::lock_guard lock(mutex_);
  exchange({Kind::beat, entered, "", ""}, stall(timeout_));
}

std::string Store::verdict(Duration wait, std::optional<int64_t> failed) {
  std::lock_guard lock(mutex_);
  if (verdict_.empty()) {
    const std::string in = failed ? std::to_string(*failed) : "";
    auto answer = exchange({Kind::verdict, wait.count(), "", in}, wait);
    if (verdict_.empty()) {
      verdict_ = answer && answer->kind == Kind::done
                     ? answer->value
                     : "rank 0, which serves the store, has ended, is stopped or is out of reach";
    }
  }
  return verdict_;
}

std::string Store::certain_verdict(Duration wait) {
  std::lock_guard lock(mutex_);
  if (verdict_.empty()) {
    const auto answer = exchange({Kind::verdict, wait.count(), kCertain, ""}, wait);
    if (answer && answer->kind == Kind::done) verdict_ = answer->value;
  }
  return verdict_;
}

bool Store::failed() {
  std::lock_guard lock(mutex_);
  return lost_ || !verdict_.empty();
}

Message Store::ask(const Message& request, Duration wait) {
  std::unique_lock lock(mutex_);
  auto answer = exchange(request, wait);
  lock.unlock();
  if (!answer) throw DeviceError("the store does not answer: " + verdict(Duration(0)));
  if (answer->kind == Kind::refused) throw UserError(answer->value);
  return *answer;
}

std::optional<Message> Store::exchange(const Message& request, Duration wait) {
  Clock::time_point deadline = Clock::now() + wait + grace(timeout_);
  if (lost_) return std::nullopt;
  bool sent = send(socket_, request, deadline);
  // Receive even if the send failed: rank 0 may have sent a verdict before it ended.
  while (auto answer = receive(socket_, buffer_, deadline)) {
    if (answer->kind != Kind::verdict && sent) return answer;
    verdict_ = answer->value;
  }
  lost_ = true;
  return std::nullopt;
}

}  // namespace fluid::comm
