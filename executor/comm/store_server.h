#pragma once

#include <atomic>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/wire.h"
#include "executor/options/world.h"

namespace fluid::comm {

/// A failure is blamed on a rank that has sent nothing for this long.
Duration silence(Duration timeout);

/// Interval between heartbeats.
Duration heartbeat_interval(Duration timeout);

/// The server of the store, on rank 0: keys, values, and the state of each rank. Runs on its own
/// thread until destroyed.
class StoreServer {
 public:
  /// Throws UserError when the port is in use.
  StoreServer(const World& world, Duration timeout);
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  /// Waits up to 5 s for ranks that have not left, unless something has failed.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

 private:
  struct Connection {
    Socket socket;
    std::string in, out;
    int rank = -1;  ///< -1 until the client has said hello
    std::optional<Message> waiting;
    Clock::time_point deadline;
    bool closing = false;
  };
  struct Rank {
    enum class State : uint8_t { absent, present, gone, left } state = State::absent;
    Clock::time_point heard;
    int64_t entered = 0;  ///< number of collectives that the rank has started
    int64_t barrier = 0;  ///< number of the last barrier that the rank has reached
  };

  void serve();
  void accept_all();
  void exchange(Connection& connection, short ready);
  void handle(Connection& connection, Message request);
  void answer(Connection& connection, const Message& message);
  std::optional<Message> hello(Connection& connection, const Message& request);
  /// Answers a request if it can be answered now; otherwise nothing, and the request waits.
  std::optional<Message> attempt(const Connection& connection, const Message& request);
  std::string absent_ranks() const;
  /// Describes the first rank that died or left, or has sent nothing for longer than `silence`; ""
  /// when there is none.
  std::string missing(Duration silence);
  /// Describes the rank that is likely to blame. `failed`: number of the failed collective, or ""
  /// for another call.
  std::string likeliest(const std::string& failed);
  /// Makes `verdict` the final one, and sends it to all ranks.
  void judge(const std::string& verdict);
  bool has_present_ranks() const;
  Clock::time_point next_deadline() const;
  void lose(Connection& connection);

  World world_;
  std::atomic<Duration> timeout_;
  Socket listener_;
  int wake_[2] = {-1, -1};
  std::list<Connection> connections_;
  std::map<std::string, std::string> values_;
  std::map<std::string, int64_t> sums_;
  std::map<std::string, std::string> proposed_;
  std::vector<std::string> proposed_keys_;  ///< in order of arrival
  std::vector<Rank> ranks_;
  std::vector<int> lost_;  ///< ranks that died or left, earliest first
  std::string
      absent_at_timeout_;   ///< ranks that were absent when the first wait for all ranks timed out
  std::string user_error_;  ///< a user's mistake; the answer to every request
  std::string verdict_;     ///< the first verdict, final for all ranks
  std::optional<Clock::time_point> ending_;
  std::thread thread_;
};

}  // namespace fluid::comm
