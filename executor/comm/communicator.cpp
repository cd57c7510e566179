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

/// The communicator of a single process. Collectives do nothing.
class SingleProcessCommunicator final : public Communicator {
 public:
  void all_reduce(void*, int64_t, DType) override {}
  void reduce_scatter(void*, int64_t, DType) override {}
  void all_gather(void*, int64_t, DType) override {}
  void broadcast(void*, int64_t, int) override {}
  void barrier(std::chrono::milliseconds) override {}
  void set_timeout(std::chrono::milliseconds) override {}
};

using StringMap = std::map<std::string, std::string>;

/// Collective. Returns the ranks whose hash differs from the hash of rank 0, such as "1, 3".
/// Returns "" if all hashes are equal.
std::string differing_ranks(Communicator& communicator, const World& world, uint64_t hash) {
  uint64_t first = hash;
  communicator.broadcast(&first, sizeof first, 0);
  std::vector<double> differs(static_cast<size_t>(world.size));
  differs[static_cast<size_t>(world.rank)] = hash != first;
  communicator.all_reduce(differs.data(), world.size, f64);
  std::string ranks;
  for (size_t rank = 0; rank < differs.size(); ++rank) {
    if (differs[rank] != 0) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return ranks;
}

std::string mismatch_message(const std::string& ranks, const std::string& what) {
  return "rank " + ranks + " has another " + what + " than rank 0: start all ranks alike";
}

/// Concatenates names and values, each terminated by a zero byte. parse_map() is the inverse.
std::string serialize_map(const StringMap& values) {
  std::string text;
  for (const auto& [name, value] : values) text += name + '\0' + value + '\0';
  return text;
}

StringMap parse_map(const std::string& text) {
  StringMap values;
  std::istringstream in(text);
  for (std::string name, value; std::getline(in, name, '\0') && std::getline(in, value, '\0');) {
    values.emplace(name, value);
  }
  return values;
}

}  // namespace

void Communicator::throw_failure(const std::string& collective, int64_t sequence_number,
                                 const std::string& cause) {
  throw DeviceError("cannot complete " + collective + " " + std::to_string(sequence_number) +
                    (cause.empty() ? ": it does not finish" : ": " + cause));
}

std::unique_ptr<Communicator> make_communicator(
    const World& world, [[maybe_unused]] std::chrono::milliseconds timeout) {
  if (world.size == 1) return std::make_unique<SingleProcessCommunicator>();
#ifdef FLUID_GLOO
  return comm::make_gloo(world, timeout);
#else
  throw UserError("this build has no Gloo (FLUID_GLOO=OFF): it runs one process, not " +
                  std::to_string(world.size));
#endif
}

void check_equal(Communicator& communicator, const World& world, const std::string& subject,
                 uint64_t hash) {
  const std::string ranks = differing_ranks(communicator, world, hash);
  if (!ranks.empty()) throw UserError(mismatch_message(ranks, subject));
}

void check_equal(Communicator& communicator, const World& world, const std::string& subject,
                 const StringMap& values) {
  const std::string own = serialize_map(values);
  const std::string ranks =
      differing_ranks(communicator, world, XXH3_64bits(own.data(), own.size()));
  if (ranks.empty()) return;
  const StringMap first = parse_map(broadcast_text(communicator, world, own, 0));
  const std::string differences =
      broadcast_first_nonempty(communicator, world, describe_changes(first, values, "rank 0:"));
  throw UserError(fmt::format("{} ({})", mismatch_message(ranks, subject), differences));
}

std::string broadcast_first_nonempty(Communicator& communicator, const World& world,
                                     const std::string& text) {
  std::vector<double> lengths(static_cast<size_t>(world.size));
  lengths[static_cast<size_t>(world.rank)] = static_cast<double>(text.size());
  communicator.all_reduce(lengths.data(), world.size, f64);
  const auto sender = std::ranges::find_if(lengths, [](double length) { return length > 0; });
  if (sender == lengths.end()) return "";
  std::string first = text;
  first.resize(static_cast<size_t>(*sender));
  const auto rank = static_cast<int>(sender - lengths.begin());
  communicator.broadcast(first.data(), static_cast<int64_t>(first.size()), rank);
  return "rank " + std::to_string(rank) + ": " + first;
}

std::string broadcast_text(Communicator& communicator, const World& world, const std::string& text,
                           int root) {
  auto bytes = static_cast<int64_t>(text.size());
  communicator.broadcast(&bytes, sizeof bytes, root);
  std::string received = world.rank == root ? text : std::string();
  received.resize(static_cast<size_t>(bytes));
  communicator.broadcast(received.data(), bytes, root);
  return received;
}

StringMap merge_by_lowest_rank(Communicator& communicator, const World& world,
                               const StringMap& own) {
  const std::string text = serialize_map(own);
  StringMap merged;
  for (int rank = 0; rank < world.size; ++rank) {
    merged.merge(parse_map(broadcast_text(communicator, world, text, rank)));
  }
  return merged;
}

}  // namespace fluid
