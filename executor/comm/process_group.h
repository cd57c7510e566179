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

/// The processes that train together, as one of them sees them. All of them make the same calls in
/// the same order; where a process is alone a call returns at once.
class ProcessGroup {
 public:
  /// Meets the others within options.first_timeout. Throws as make_communicator() does.
  ProcessGroup(Place place, const ExecutorOptions& options);

  /// What they compute together; null where this process is alone.
  Communicator* communicator() const { return communicator_.get(); }
  bool alone() const { return communicator_ == nullptr; }
  const World& world() const { return world_; }

  /// The first step begins: from then on steps bring the ranks together, which until then come at
  /// quite different times, and wait for each other as long as first_timeout.
  void start();
  bool started() const { return started_; }

  /// Waits up to first_timeout for ranks that come late, as where one has worked for all.
  void meet();
  /// The same where no step has begun yet.
  void meet_before_start();
  /// Rank 0's `text`.
  std::string share(const std::string& text);
  /// Does `work` on rank 0, for which the others wait. What it throws, they throw as a UserError.
  void lead(const std::function<void()>& work);
  /// Throws the same UserError on all when some have another `value` of `what` than rank 0.
  void agree(const std::string& what, const std::string& value);
  /// The same of several values by their names: it says which differ.
  void agree(const std::string& what, const std::map<std::string, std::string>& values);
  /// Adds up over all, in place.
  void add_up(std::span<double> figures);
  /// What the lowest rank that has something to say says.
  std::string first_said(const std::string& here);

 private:
  World world_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<Communicator> communicator_;
  bool started_ = false;
};

}  // namespace fluid
