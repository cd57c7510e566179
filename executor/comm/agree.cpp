#include "executor/comm/agree.h"

#include <algorithm>
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

std::string first_said(Communicator& all, const World& world, const std::string& text) {
  std::vector<double> lengths(static_cast<size_t>(world.size));
  lengths[static_cast<size_t>(world.rank)] = static_cast<double>(text.size());
  all.all_reduce(lengths.data(), world.size, f64);
  const auto said = std::ranges::find_if(lengths, [](double length) { return length > 0; });
  if (said == lengths.end()) return "";
  std::string first = text;
  first.resize(static_cast<size_t>(*said));
  const auto rank = static_cast<int>(said - lengths.begin());
  all.broadcast(first.data(), static_cast<int64_t>(first.size()), rank);
  return "rank " + std::to_string(rank) + ": " + first;
}

}  // namespace fluid
