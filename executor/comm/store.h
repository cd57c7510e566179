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

/// The rendezvous key-value store of a world, over TCP. Rank 0 runs the server. The server accepts
/// only processes with its job id and restart count, so keys of different jobs cannot collide.
/// Every call ends within its timeout. Thread-safe; calls are serialised. A process may have only
/// one store of a world at a time. All ranks may create another store after destroying the first.
class Store {
 public:
  /// Rank 0 starts the server at the world's port. Every rank connects and waits until all ranks
  /// are connected. Throws UserError when the port is in use, when a rank's world size or job
  /// differs, or when two processes have the same rank. Throws DeviceError when ranks are absent
  /// after `timeout`.
  Store(const World& world, Duration timeout);
  /// Tells the server that this rank leaves. On rank 0, also stops the server.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void set(const std::string& key, const std::string& value);
  /// Waits until `key` is set and returns its value. Throws DeviceError at the timeout.
  std::string get(const std::string& key);
  /// Adds `n` to counter `key`, initially 0, and returns the sum. Counters have a separate key
  /// space: set() may use the same key for a value.
  int64_t add(const std::string& key, int64_t n);
  /// Proposes `value` for `key`. Returns the first value that any rank proposed for `key`.
  /// Proposals have a separate key space: set() may use the same key for another value.
  std::string propose(const std::string& key, const std::string& value);
  /// Returns the key and value of proposal `index`. Indices count proposals from 0 in order of
  /// arrival. Returns nullopt if there are fewer proposals.
  std::optional<std::pair<std::string, std::string>> proposal(int64_t index);

  /// Barrier. Throws DeviceError when a rank has not arrived after `max_wait`, has died, or has
  /// sent no heartbeat for longer than the timeout.
  void barrier(Duration max_wait);

  /// Sends a heartbeat with the number of collectives that this rank has started.
  void send_heartbeat(int64_t collectives_started);
  /// Returns a message that names the rank that caused a failure. All ranks get the same message.
  /// Returns as soon as the server is certain that a rank has died, left, or stopped sending
  /// heartbeats. Otherwise returns after `wait` and names the most likely rank. `failed`: sequence
  /// number of the failed collective, if any. A rank that has started this collective is not
  /// reported as late.
  std::string diagnose(Duration wait, std::optional<int64_t> failed = {});
  /// Waits up to `wait` until a rank has died, left, or stopped sending heartbeats. Returns a
  /// message that names this rank, or "" if there is none.
  std::string diagnose_if_certain(Duration wait);

  /// Whether a rank has failed or rank 0 is unreachable. After such a failure, a collective may
  /// never complete.
  bool has_failed();

  Duration timeout() const { return timeout_; }
  /// Sets the timeout of later calls. Thread-safe.
  void set_timeout(Duration timeout);
  /// IP address at which other ranks reach this host.
  std::string address() const { return local_address(socket_); }

 private:
  /// Connects and sends `hello`. Returns the response, or nullopt if there is none. For example,
  /// the server may still serve the previous store.
  std::optional<Message> try_join(Clock::time_point deadline);
  /// Sends a request and returns the response. Throws DeviceError if there is no response, and
  /// UserError if the response is `user_error`.
  Message request_or_throw(const Message& request, Duration wait);
  /// Sends a request and returns the response; nullopt if rank 0 is unreachable.
  std::optional<Message> round_trip(const Message& request, Duration wait);

  World world_;
  std::atomic<Duration> timeout_;
  std::mutex mutex_;
  std::unique_ptr<StoreServer> server_;
  Socket socket_;
  std::string buffer_;
  int64_t barriers_entered_ = 0;
  std::string diagnosis_;
  bool server_unreachable_ = false;
};

}  // namespace fluid::comm
