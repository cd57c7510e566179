#include "executor/session/rank_sync.h"

#include <algorithm>
#include <cstring>

#include "executor/comm/communicator.h"

namespace fluid {

void send(Session& session, const std::vector<Variable>& variables) {
  for (const Variable& v : variables) {
    if (!v.part) session.values().broadcast(v);
  }
  session.values().refresh_half_weights();
}

std::optional<Tensor> whole(Session& session, const ProcessGroup& group, const Variable& variable) {
  const Tensor own = session.values().value(variable);
  if (!variable.part) return own;
  Tensor all(own.dtype(), variable.part->whole);
  const World& world = group.world();
  for (int rank = 0; rank < world.size; ++rank) {
    std::byte* part = variable.part->in(all, rank);
    const int64_t bytes = variable.part->elements(rank) * size_of(own.dtype());
    if (rank == world.rank) std::memcpy(part, own.data(), static_cast<size_t>(bytes));
    group.communicator()->broadcast(part, bytes, rank);
  }
  return world.rank == 0 ? std::optional(all) : std::nullopt;
}

void scatter(Session& session, const ProcessGroup& group,
             const std::function<Tensor(const std::string&)>& whole) {
  std::vector<Variable> variables = session.variables().all();
  std::ranges::sort(variables, {}, &Variable::name);
  for (const Variable& v : variables) {
    if (!v.part) continue;
    Tensor all(v.type.dtype, v.part->whole);
    if (whole) all = whole(v.name).cast(v.type.dtype).copy();
    group.communicator()->broadcast(all.data(), all.bytes(), 0);
    session.values().assign(v, v.part->local_shard(all));
  }
}

void TuningSync::begin(const ProcessGroup& group, Session& session) {
  known_ = together(*group.communicator(), group.world(), session.device().decisions());
  session.adopt_tuning_record(known_);
}

void TuningSync::share(const ProcessGroup& group, Session& session) {
  if (!group.started()) return;
  std::map<std::string, std::string> first;
  for (const auto& [key, own] : session.device().decisions()) {
    if (!known_.contains(key)) first.emplace(key, group.communicator()->propose(key, own));
  }
  if (first.empty()) return;
  known_.insert(first.begin(), first.end());
  session.adopt_tuning_record(first);
}

void TuningSync::poll_choices(const ProcessGroup& group, Session& session) {
  if (!group.started() || session.device().decisions().empty()) return;
  std::map<std::string, std::string> heard;
  try {
    while (const auto next = group.communicator()->proposal(proposals_read_)) {
      ++proposals_read_;
      if (known_.insert(*next).second) heard.insert(*next);
    }
  } catch (const DeviceError&) {
    // Rank 0 runs the store and may have exited. Writing a snapshot matters more than the other
    // ranks' choices.
  }
  if (!heard.empty()) session.adopt_tuning_record(heard);
}

}  // namespace fluid
