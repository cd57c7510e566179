#include "executor/comm/communicator.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "executor/comm/gloo.h"
#include "executor/options/changes.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// The communicator of a world of one process: collectives do nothing.
class Alone final : public Communicator {
 public:
  void all_reduce(void*, int64_t, DType) override {}
  void reduce_scatter(void*, int64_t, DType) override {}
  void all_gather(void*, int64_t, DType) override {}
  void broadcast(void*, int64_t, int) override {}
  void barrier(std::chrono::milliseconds) override {}
  void set_timeout(std::chrono::milliseconds) override {}
};

using Texts = std::map<std::string, std::string>;

/// "1, 3": the ranks whose hash differs from rank 0's; "" if none does. Collective.
std::string differing_ranks(Communicator& all, const World& world, uint64_t hash) {
  uint64_t first = hash;
  all.broadcast(&first, sizeof first, 0);
  std::vector<double> differs(static_cast<size_t>(world.size));
  differs[static_cast<size_t>(world.rank)] = hash != first;
  all.all_reduce(differs.data(), world.size, f64);
  std::string ranks;
  for (size_t rank = 0; rank < differs.size(); ++rank) {
    if (differs[rank] != 0) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return ranks;
}

std::string differ(const std::string& ranks, const std::string& what) {
  return "rank " + ranks + " has another " + what + " than rank 0: start all ranks alike";
}

/// Concatenates names and values, each terminated by a zero byte.
std::string text_of(const Texts& values) {
  std::string text;
  for (const auto& [name, value] : values) text += name + '\0' + value + '\0';
  return text;
}

Texts of_text(const std::string& text) {
  Texts values;
  std::istringstream in(text);
  for (std::string name, value; std::getline(in, name, '\0') && std::getline(in, value, '\0');) {
    values.emplace(name, value);
  }
  return values;
}

}  // namespace

void Communicator::fail(const std::string& what, int64_t number, const std::string& said) {
  throw DeviceError("cannot complete " + what + " " + std::to_string(number) +
                    (said.empty() ? ": it does not finish" : ": " + said));
}

std::unique_ptr<Communicator> make_communicator(
    const World& world, [[maybe_unused]] std::chrono::milliseconds timeout) {
  if (world.size == 1) return std::make_unique<Alone>();
#ifdef FLUID_GLOO
  return comm::make_gloo(world, timeout);
#else
  throw UserError("this build has no Gloo (FLUID_GLOO=OFF): it runs one process, not " +
                  std::to_string(world.size));
#endif
}

void check_equal(Communicator& all, const World& world, const std::string& what, uint64_t hash) {
  const std::string ranks = differing_ranks(all, world, hash);
  if (!ranks.empty()) throw UserError(differ(ranks, what));
}

void check_equal(Communicator& all, const World& world, const std::string& what,
                 const Texts& values) {
  const std::string own = text_of(values);
  const std::string ranks = differing_ranks(all, world, XXH3_64bits(own.data(), own.size()));
  if (ranks.empty()) return;
  const Texts first = of_text(broadcast_text(all, world, own, 0));
  const std::string said = broadcast_first_message(all, world, changes(first, values, "rank 0:"));
  throw UserError(fmt::format("{} ({})", differ(ranks, what), said));
}

std::string broadcast_first_message(Communicator& all, const World& world,
                                    const std::string& text) {
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

std::string broadcast_text(Communicator& all, const World& world, const std::string& text,
                           int root) {
  auto bytes = static_cast<int64_t>(text.size());
  all.broadcast(&bytes, sizeof bytes, root);
  std::string theirs = world.rank == root ? text : std::string();
  theirs.resize(static_cast<size_t>(bytes));
  all.broadcast(theirs.data(), bytes, root);
  return theirs;
}

Texts together(Communicator& all, const World& world, const Texts& own) {
  const std::string text = text_of(own);
  Texts known;
  for (int rank = 0; rank < world.size; ++rank) {
    known.merge(of_text(broadcast_text(all, world, text, rank)));
  }
  return known;
}

}  // namespace fluid
