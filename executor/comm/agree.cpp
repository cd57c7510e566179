#include "executor/comm/agree.h"

#include <vector>

#include "ir/error.h"

namespace fluid {

void agree(Communicator& all, const World& world, const std::string& what, uint64_t hash) {
  uint64_t first = hash;
  all.broadcast(&first, sizeof first, 0);
  std::vector<double> differs(static_cast<size_t>(world.size));
  differs[static_cast<size_t>(world.rank)] = hash != first;
  all.all_reduce(differs.data(), world.size, f64);
  std::string ranks;
  for (size_t rank = 0; rank < differs.size(); ++rank) {
    if (differs[rank] != 0) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (ranks.empty()) return;
  throw UserError("rank " + ranks + " has another " + what + " than rank 0: start all ranks alike");
}

}  // namespace fluid
