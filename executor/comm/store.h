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

/// Keys and values that all ranks of a world share, over TCP; rank 0 serves them. A store belongs
/// to one job and one restart of it: processes of others are refused, so that their keys never mix.
/// Every call ends within its time-out. Safe to use from several threads, which wait for each
/// other.
class Store {
 public:
  /// Rank 0 starts serving at the world's port; all connect, and wait until every rank has. Throws
  /// UserError when the port is in use, when ranks were started for worlds of different sizes, two
  /// as the same rank, or for another job; DeviceError when rank 0 or others are absent after
  /// `timeout`.
  Store(const World& world, Duration timeout);
  /// Says goodbye. Rank 0 stops serving.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void set(const std::string& key, const std::string& value);
  /// Waits until the key is set. Throws DeviceError when it is not within the time-out.
  std::string get(const std::string& key);
  /// Adds to the key's sum, 0 at first, and returns it. Sums are apart from the values of set().
  int64_t add(const std::string& key, int64_t n);
  /// What was proposed first for the key, by whichever rank. Proposals are apart from the values of
  /// set().
  std::string propose(const std::string& key, const std::string& value);
  /// The key that was proposed for after `number` others, and what first; nothing if there is none.
  std::optional<std::pair<std::string, std::string>> proposal(int64_t number);

  /// Returns when every rank has called it. Throws DeviceError when one has not after `patience`,
  /// or is gone, or gives no sign of life for as long as the time-out.
  void meet(Duration patience);

  /// Says that this rank lives and how many collectives it has entered.
  void beat(int64_t entered);
  /// Names the rank to blame for a failure: the same one on every rank that asks. Takes up to
  /// `wait` to be sure; then names the likeliest. `failed`: the collective that it failed in, which
  /// who has entered it is not late for.
  std::string verdict(Duration wait, std::optional<int64_t> failed = {});
  /// The same where one is gone or silent; else "".
  std::string certain_verdict(Duration wait);

  /// Whether somebody is to blame already, or rank 0 cannot be reached: what others are waited for
  /// may never come.
  bool failed();

  Duration timeout() const { return timeout_; }
  /// From now on, for whoever asks. Thread-safe.
  void set_timeout(Duration timeout);
  /// By which the other ranks reach this host.
  std::string address() const { return local_address(socket_); }

 private:
  /// Throws what the answer or its absence tells.
  Message ask(const Message& request, Duration wait);
  /// The answer; nothing when rank 0 cannot be reached, from then on.
  std::optional<Message> exchange(const Message& request, Duration wait);

  World world_;
  std::atomic<Duration> timeout_;
  std::mutex mutex_;
  std::unique_ptr<StoreServer> server_;
  Socket socket_;
  std::string buffer_;
  int64_t meetings_ = 0;
  std::string verdict_;
  bool lost_ = false;
};

}  // namespace fluid::comm
