#include "executor/comm/agree.h"

#include <algorithm>
#include <sstream>
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

std::string text_of_rank(Communicator& all, const World& world, const std::string& text, int root) {
  auto bytes = static_cast<int64_t>(text.size());
  all.broadcast(&bytes, sizeof bytes, root);
  std::string theirs = world.rank == root ? text : std::string();
  theirs.resize(static_cast<size_t>(bytes));
  all.broadcast(theirs.data(), bytes, root);
  return theirs;
}

std::map<std::string, std::string> together(Communicator& all, const World& world,
                                            const std::map<std::string, std::string>& own) {
  std::string text;  // each string with a zero behind it
  for (const auto& [key, value] : own) text += key + '\0' + value + '\0';
  std::map<std::string, std::string> known;
  for (int rank = 0; rank < world.size; ++rank) {
    std::istringstream in(text_of_rank(all, world, text, rank));
    for (std::string key, value; std::getline(in, key, '\0') && std::getline(in, value, '\0');) {
      known.emplace(key, value);
    }
  }
  return known;
}

}  // namespace fluid
