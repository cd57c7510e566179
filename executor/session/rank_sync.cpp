#include "executor/session/rank_sync.h"

#include <algorithm>
#include <cstring>

#include "executor/comm/communicator.h"

namespace fluid {

void broadcast_variables(Session& session, const std::vector<Variable>& variables) {
  for (const Variable& v : variables) {
    if (!v.shard) session.values().broadcast(v);
  }
  session.values().refresh_half_weights();
}

std::optional<Tensor> gather_variable(Session& session, const ProcessGroup& group,
                                      const Variable& variable) {
  const Tensor own = session.values().value(variable);
  if (!variable.shard) return own;
  Tensor all(own.dtype(), variable.shard->full_shape);
  const World& world = group.world();
  for (int rank = 0; rank < world.size; ++rank) {
    std::byte* part = variable.shard->shard_address(all, rank);
    const int64_t bytes = variable.shard->elements(rank) * size_of(own.dtype());
    if (rank == world.rank) std::memcpy(part, own.data(), static_cast<size_t>(bytes));
    group.communicator()->broadcast(part, bytes, rank);
  }
  return world.rank == 0 ? std::optional(all) : std::nullopt;
}

void scatter_sharded_variables(Session& session, const ProcessGroup& group,
                               const std::function<Tensor(const std::string&)>& full_value) {
  std::vector<Variable> variables = session.variables().all();
  std::ranges::sort(variables, {}, &Variable::name);
  for (const Variable& v : variables) {
    if (!v.shard) continue;
    Tensor all(v.type.dtype, v.shard->full_shape);
    if (full_value) all = full_value(v.name).cast(v.type.dtype).copy();
    group.communicator()->broadcast(all.data(), all.bytes(), 0);
    session.values().assign(v, v.shard->local_shard(all));
  }
}

std::map<std::string, std::string> merge_tuning_records(
    const ProcessGroup& group, const std::map<std::string, std::string>& own) {
  if (group.is_single_process()) return own;
  return merge_by_lowest_rank(*group.communicator(), group.world(), own);
}

void TuningSync::merge_choices(const ProcessGroup& group, Session& session) {
  agreed_ = merge_tuning_records(group, session.device().tuning_record());
  session.adopt_tuning_record(agreed_);
}

void TuningSync::propose_choices(const ProcessGroup& group, Session& session) {
  if (!group.started()) return;
  std::map<std::string, std::string> accepted;
  for (const auto& [key, own] : session.device().tuning_record()) {
    if (!agreed_.contains(key)) accepted.emplace(key, group.communicator()->propose(key, own));
  }
  if (accepted.empty()) return;
  agreed_.insert(accepted.begin(), accepted.end());
  session.adopt_tuning_record(accepted);
}

void TuningSync::poll_choices(const ProcessGroup& group, Session& session) {
  if (!group.started() || session.device().tuning_record().empty()) return;
  std::map<std::string, std::string> adopted;
  try {
    while (const auto next = group.communicator()->proposal(proposals_read_)) {
      ++proposals_read_;
      if (agreed_.insert(*next).second) adopted.insert(*next);
    }
  } catch (const DeviceError&) {
    // The store is unreachable after rank 0 has exited. This rank must still be able to write its
    // snapshot, so ignore the error and the other ranks' choices.
  }
  if (!adopted.empty()) session.adopt_tuning_record(adopted);
}

}  // namespace fluid
