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

/// How long a rank may be silent before it counts as stopped when something has failed.
Duration silence(Duration timeout);

/// How often a rank says that it lives.
Duration beat_interval(Duration timeout);

/// Rank 0's half of the store: keys and values, and who of the world is there. Serves from a thread
/// of its own until destroyed.
class StoreServer {
 public:
  /// Throws UserError when the port is in use.
  StoreServer(const World& world, Duration timeout);
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  /// Waits a little for ranks that have not left yet, unless something has failed.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

 private:
  struct Connection {
    Socket socket;
    std::string in, out;
    int rank = -1;  ///< until it has said hello
    std::optional<Message> waiting;
    Clock::time_point deadline;
    bool closing = false;
  };
  struct Rank {
    enum class State : uint8_t { absent, present, gone, left } state = State::absent;
    Clock::time_point heard;
    int64_t entered = 0;  ///< collectives
    int64_t meeting = 0;  ///< the last that it asked for
  };

  void serve();
  void accept_all();
  void exchange(Connection& connection, short ready);
  void handle(Connection& connection, Message request);
  void answer(Connection& connection, const Message& message);
  std::optional<Message> hello(Connection& connection, const Message& request);
  /// The answer to a request that may have to wait; nothing while it has to.
  std::optional<Message> attempt(const Connection& connection, const Message& request);
  std::string absent_ranks() const;
  /// Who has gone, or not been heard for longer than `silence`; "" when nobody has.
  std::string missing(Duration silence);
  /// Who is to blame by what is likely, for the failure of a collective, by its number, or of
  /// another call, "".
  std::string likeliest(const std::string& failed);
  /// Holds for all from now on, and is told to all.
  void judge(const std::string& verdict);
  bool anybody_needs_us() const;
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
  std::vector<std::string> proposed_keys_;  ///< in the order in which they came
  std::vector<Rank> ranks_;
  std::vector<int> lost_;  ///< ranks that are gone or left, first first
  std::string missed_;     ///< ranks that were absent when somebody's wait ended
  std::string mistake_;    ///< of the user's; ends every request
  std::string verdict_;    ///< the first one holds for all
  std::optional<Clock::time_point> ending_;
  std::thread thread_;
};

}  // namespace fluid::comm
