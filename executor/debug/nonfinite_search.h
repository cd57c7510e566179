#pragma once

#include <memory>
#include <string>

#include "executor/session/session.h"

namespace fluid {

/// Finds where a training step stopped being finite, by running it again with the counters that it
/// found and looking at every kernel. Needs Options::check_finite.
class NonfiniteSearch {
 public:
  explicit NonfiniteSearch(Session& session) : session_(session) {}

  /// A training step is about to run: keeps what it moves on.
  void before_step();

  /// Where the training step that was run last met its first number that is not finite: names the
  /// op, its place in the user's source and the element; "" when it met none. Changes no variable,
  /// also where it fails, but as Session::run_again() says.
  std::string find(const PreparedStep& step, const Batch& batch);

 private:
  std::string bad_source(const PreparedStep& step, const Batch& batch);
  std::string bad_kernel(const PreparedStep& step, const Batch& batch);
  std::string bad_within(const PreparedStep& step, const Batch& batch);
  void run_again(const PreparedStep& step, size_t last, const Batch& batch,
                 const StepsInFlight::See& see);
  Device& host();

  Session& session_;
  VariableValues::Controls before_;
  std::unique_ptr<Device> host_;  ///< null: not yet asked for
};

}  // namespace fluid
