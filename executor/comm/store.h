#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "executor/comm/store_server.h"
#include "executor/comm/wire.h"
#include "executor/options/world.h"

namespace fluid::comm {

/// A key-value store that all ranks of a world share over TCP; rank 0 serves it. It belongs to one
/// restart of one job and rejects processes of others, so their keys never mix. Every call ends
/// within its time-out. Thread-safe; calls are serialised.
class Store {
 public:
  /// Rank 0 starts the server at the world's port. Every rank connects, and waits until all have.
  /// Throws UserError when the port is in use, a rank's world size or job differs, or two processes
  /// have one rank. Throws DeviceError when ranks are absent after `timeout`.
  Store(const World& world, Duration timeout);
  /// Tells the server that this rank leaves. Rank 0 stops the server.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void set(const std::string& key, const std::string& value);
  /// Waits until the key is set. Throws DeviceError at the time-out.
  std::string get(const std::string& key);
  /// Adds `n` to the counter `key`, initially 0, and returns the sum. Counters and values of set()
  /// have separate keys.
  int64_t add(const std::string& key, int64_t n);
  /// Stores `value` for `key` unless some rank has done so, and returns the stored value. Proposals
  /// and values of set() have separate keys.
  std::string propose(const std::string& key, const std::string& value);
  /// Proposal `number`, in order of arrival and counted from 0: key and value; nullopt when there
  /// are fewer.
  std::optional<std::pair<std::string, std::string>> proposal(int64_t number);

  /// Barrier. Throws DeviceError when a rank has not arrived after `patience`, has died, or has
  /// sent no heartbeat for the time-out.
  void barrier(Duration patience);

  /// Sends a heartbeat with the number of collectives that this rank has started.
  void beat(int64_t entered);
  /// The rank to blame for a failure, as text; every rank that asks gets the same answer. Waits up
  /// to `wait` for certainty, then names the likeliest rank. `failed`: number of the failed
  /// collective. A rank that has started this collective is not blamed for being late.
  std::string verdict(Duration wait, std::optional<int64_t> failed = {});
  /// The rank that certainly died or sends no heartbeats, as text. Waits up to `wait`. Returns ""
  /// when there is none.
  std::string certain_verdict(Duration wait);

  /// Whether a verdict exists, or rank 0 is unreachable. Waiting for other ranks may then be
  /// futile.
  bool failed();

  Duration timeout() const { return timeout_; }
  /// Sets the time-out of later calls. Thread-safe.
  void set_timeout(Duration timeout);
  /// The address by which other ranks reach this host.
  std::string address() const { return local_address(socket_); }

 private:
  /// Sends a request and returns the answer. Throws DeviceError without an answer, and UserError
  /// when the server reports a user's mistake.
  Message ask(const Message& request, Duration wait);
  /// Sends a request and returns the answer; nullopt once rank 0 is unreachable.
  std::optional<Message> exchange(const Message& request, Duration wait);

  World world_;
  std::atomic<Duration> timeout_;
  std::mutex mutex_;
  std::unique_ptr<StoreServer> server_;
  Socket socket_;
  std::string buffer_;
  int64_t barriers_ = 0;
  std::string verdict_;
  bool lost_ = false;
};

}  // namespace fluid::comm
