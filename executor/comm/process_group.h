#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/options/executor_options.h"
#include "executor/options/place.h"

namespace fluid {

/// The process group of an executor: this process and its peers. All functions except the accessors
/// are collective. With a single process they do not communicate.
class ProcessGroup {
 public:
  /// Connects to the other ranks within options.rendezvous_timeout. Throws the errors of
  /// make_communicator().
  ProcessGroup(Place place, const ExecutorOptions& options);

  /// The communicator of the group; null for a single process.
  Communicator* communicator() const { return communicator_.get(); }
  bool is_single_process() const { return communicator_ == nullptr; }
  const World& world() const { return world_; }

  /// Barrier before the first step. Waits up to rendezvous_timeout, because ranks may take very
  /// different times to start up.
  void startup_barrier();
  bool started() const { return started_; }

  /// Barrier with the timeout `rendezvous_timeout`, which is longer than the timeout of
  /// collectives. Used, for example, while rank 0 saves a checkpoint.
  void barrier();
  /// Calls barrier() if startup_barrier() has not run, because the ranks may still be starting up.
  void ensure_startup_barrier();
  /// Returns the `text` of rank 0 on all ranks.
  std::string broadcast_from_rank_0(const std::string& text);
  /// Runs `work` on rank 0 while the other ranks wait. If `work` throws, rank 0 rethrows its
  /// exception and the other ranks throw a UserError with the same message.
  void run_on_rank_0(const std::function<void()>& work);
  /// Throws the same UserError on all ranks unless `value` is equal on all ranks. `subject`: name
  /// of the value in the message, such as "program".
  void check_equal(const std::string& subject, const std::string& value);
  /// Throws the same UserError on all ranks unless `values`, a map from name to value, is equal on
  /// all ranks. The message lists the differences.
  void check_equal(const std::string& subject, const std::map<std::string, std::string>& values);
  /// Sums `values` over all ranks, in place.
  void all_reduce(std::span<double> values);
  /// Broadcasts the message of the lowest rank whose `message` is not empty. Returns "rank 1:
  /// MESSAGE", or "" if all messages are empty.
  std::string broadcast_first_nonempty(const std::string& message);
  /// Merges the ranks' maps. If several ranks have the same key, the value of the lowest rank wins.
  std::map<std::string, std::string> merge_by_lowest_rank(
      const std::map<std::string, std::string>& own_values);

 private:
  World world_;
  std::chrono::milliseconds rendezvous_timeout_;
  std::unique_ptr<Communicator> communicator_;
  bool started_ = false;
};

}  // namespace fluid
