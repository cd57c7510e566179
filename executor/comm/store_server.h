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

/// Returns how long a rank may be silent before it counts as dead.
Duration heartbeat_timeout(Duration timeout);

/// Returns the interval between the heartbeats of a rank.
Duration heartbeat_interval(Duration timeout);

/// The server of the store, on rank 0. Stores keys, values, and the state of each rank. Runs on its
/// own thread until destroyed.
class StoreServer {
 public:
  /// Listens on the world's port. Throws UserError if the port is in use.
  StoreServer(const World& world, Duration timeout);
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  /// Waits up to 5 s for the connected ranks to leave. Does not wait after a failure.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

 private:
  struct Connection {
    Socket socket;
    std::string in, out;
    int rank = -1;  ///< rank of the client; -1 before its hello message
    std::optional<Message> waiting;
    Clock::time_point deadline;
    bool closing = false;
  };
  struct Rank {
    enum class State : uint8_t { absent, present, died, left } state = State::absent;
    Clock::time_point last_heard;
    int64_t collectives_started = 0;  ///< number of collectives that the rank has started
    int64_t barrier = 0;              ///< index of the last barrier that the rank entered
  };

  void serve();
  void accept_connections();
  void handle_io(Connection& connection, short revents);
  void handle_request(Connection& connection, Message request);
  void send_response(Connection& connection, const Message& message);
  std::optional<Message> register_rank(Connection& connection, const Message& request);
  /// Returns the response to a request; nullopt if the request has to wait for other ranks.
  std::optional<Message> try_respond(const Connection& connection, const Message& request);
  std::string absent_ranks() const;
  /// Describes the first rank that died or left. If there is none, describes the rank that has been
  /// silent the longest, if longer than `max_silence`. Otherwise returns "".
  std::string describe_dead_rank(Duration max_silence);
  /// Describes the rank that most likely caused a failure. `failed`: sequence number of the failed
  /// collective; "" if no collective failed.
  std::string describe_suspect_rank(const std::string& failed);
  /// Stores `diagnosis` and sends it to all ranks. Does nothing if `diagnosis` is empty or another
  /// diagnosis is already stored.
  void publish_diagnosis(const std::string& diagnosis);
  bool has_present_ranks() const;
  Clock::time_point next_deadline() const;
  void drop_connection(Connection& connection);

  World world_;
  std::atomic<Duration> timeout_;
  Socket listener_;
  int wake_[2] = {-1, -1};
  std::list<Connection> connections_;
  std::map<std::string, std::string> values_;
  std::map<std::string, int64_t> counters_;
  std::map<std::string, std::string> proposals_;
  std::vector<std::string> proposal_keys_;  ///< keys of `proposals_`, in order of arrival
  std::vector<Rank> ranks_;
  std::vector<int> departed_ranks_;  ///< ranks that died or left, earliest first
  /// List of the ranks that were absent when the rendezvous timed out.
  std::string absent_at_timeout_;
  std::string user_error_;  ///< UserError message; once set, every request gets it as response
  std::string diagnosis_;   ///< message that names the failed rank, equal on all ranks
  std::optional<Clock::time_point> shutdown_deadline_;
  std::thread thread_;
};

}  // namespace fluid::comm
