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

/// The ranks of a training run, from the view of one process. All functions are collective unless
/// noted. With a single process they return at once.
class ProcessGroup {
 public:
  /// Connects to the other ranks within options.first_timeout. Throws as make_communicator() does.
  ProcessGroup(Place place, const ExecutorOptions& options);

  /// Null when this process is alone.
  Communicator* communicator() const { return communicator_.get(); }
  bool alone() const { return communicator_ == nullptr; }
  const World& world() const { return world_; }

  /// Barrier before the first step. Until then ranks may be far apart in time and wait for each
  /// other up to first_timeout; afterwards the collectives of steps keep them close.
  void start();
  bool started() const { return started_; }

  /// Barrier that waits up to first_timeout, for example while one rank works for all.
  void barrier();
  /// Barrier as barrier(), skipped once the first step has begun.
  void barrier_before_start();
  /// Broadcasts rank 0's `text`.
  std::string broadcast_from_rank_0(const std::string& text);
  /// Runs `work` on rank 0 while the other ranks wait. An exception on rank 0 is thrown there, and
  /// as a UserError on all other ranks.
  void run_on_rank_0(const std::function<void()>& work);
  /// Throws the same UserError on all ranks when `value` differs from rank 0's on some rank.
  /// `what`: noun for the value.
  void check_equal(const std::string& what, const std::string& value);
  /// Throws the same UserError on all ranks when named values differ from rank 0's on some rank.
  /// The message lists the differences.
  void check_equal(const std::string& what, const std::map<std::string, std::string>& values);
  /// Sums `figures` over all ranks, in place.
  void all_reduce(std::span<double> figures);
  /// Broadcasts the non-empty text of the lowest rank, as broadcast_first_message() in
  /// check_equal.h; "" when all are empty.
  std::string broadcast_first_message(const std::string& here);

 private:
  World world_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<Communicator> communicator_;
  bool started_ = false;
};

}  // namespace fluid
