#include "executor/session/shared_decisions.h"

#include "executor/comm/check_equal.h"

namespace fluid {

void TuningSync::begin(const ProcessGroup& group, Session& session) {
  known_ = together(*group.communicator(), group.world(), session.device().decisions());
  session.take(known_);
}

void TuningSync::share(const ProcessGroup& group, Session& session) {
  if (!group.started()) return;
  std::map<std::string, std::string> first;
  for (const auto& [key, own] : session.device().decisions()) {
    if (!known_.contains(key)) first.emplace(key, group.communicator()->propose(key, own));
  }
  if (first.empty()) return;
  known_.insert(first.begin(), first.end());
  session.take(first);
}

void TuningSync::hear(const ProcessGroup& group, Session& session) {
  if (!group.started() || session.device().decisions().empty()) return;
  std::map<std::string, std::string> heard;
  try {
    while (const auto next = group.communicator()->proposal(proposals_read_)) {
      ++proposals_read_;
      if (known_.insert(*next).second) heard.insert(*next);
    }
  } catch (const DeviceError&) {
    // Rank 0 runs the store and may be gone. Writing a snapshot matters more than the other ranks'
    // choices.
  }
  if (!heard.empty()) session.take(heard);
}

}  // namespace fluid
