#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/options/world.h"
#include "ir/type.h"

namespace fluid {

/// Collectives of the processes of a world. All ranks make the same calls in the same order, one
/// thread at a time. If a rank dies, hangs or does not make the call, the call on every other rank
/// throws a DeviceError that names this rank, within the time-out. All later calls throw too.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Sums `count` elements over all ranks, in place. All ranks get the same bits in every run: the
  /// order of additions depends only on the world size and the element's index. Half-precision
  /// values are added in f32 and rounded after each addition. `dtype` is a float.
  virtual void all_reduce(void* data, int64_t count, DType dtype) = 0;
  /// As all_reduce(), but each rank gets only its own shard (bucket_shard in passes/bucket.h). The
  /// other shards are set to 0.
  virtual void reduce_scatter(void* data, int64_t count, DType dtype) = 0;
  /// Gathers every rank's shard of `count` elements, in place.
  virtual void all_gather(void* data, int64_t count, DType dtype) = 0;
  /// Copies rank `root`'s bytes to all ranks.
  virtual void broadcast(void* data, int64_t bytes, int root) = 0;
  /// Barrier. Waits up to `patience` for ranks that send heartbeats, such as one that compiles or
  /// saves. Waits only up to the time-out for a rank without heartbeats.
  virtual void barrier(std::chrono::milliseconds patience) = 0;

  /// Counts the start of a collective that runs by other means, such as NCCL, and returns its
  /// number. The counts reveal ranks that are late.
  virtual int64_t enter() { return entered_++; }
  /// Reports that collective `number` failed or exceeded the time-out. Throws a DeviceError that
  /// names the rank to blame; later calls throw too. `said`: the error of the other means, or "".
  [[noreturn]] virtual void fail(const std::string& what, int64_t number, const std::string& said);

  /// Stores `value` for `key` unless some rank has done so, and returns the stored value. Not
  /// collective.
  virtual std::string propose(const std::string& /*key*/, const std::string& value) {
    return value;
  }
  /// Proposal `number`, in order of arrival and counted from 0: key and value; nullopt when there
  /// are fewer. Not collective.
  virtual std::optional<std::pair<std::string, std::string>> proposal(int64_t /*number*/) {
    return std::nullopt;
  }

  /// Sets the time-out of later calls.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;

 private:
  int64_t entered_ = 0;
};

/// Connects the ranks of `world` within `timeout`, by Gloo over TCP. A world of one needs no
/// connection. Throws UserError when the ranks' settings conflict or the port is in use, and
/// DeviceError when ranks are absent.
std::unique_ptr<Communicator> make_communicator(const World& world,
                                                std::chrono::milliseconds timeout);

/// Collective. Checks that `hash` is equal on all ranks. If not, throws the same UserError on every
/// rank; it names the ranks that differ from rank 0. `what`: noun for the hashed thing, such as
/// "program".
void check_equal(Communicator& all, const World& world, const std::string& what, uint64_t hash);

/// Collective. Checks that all ranks have equal named values. If not, throws the same UserError on
/// every rank; it also lists the differing values of the lowest rank that differs from rank 0.
void check_equal(Communicator& all, const World& world, const std::string& what,
                 const std::map<std::string, std::string>& values);

/// Collective. Broadcasts the non-empty `text` of the lowest rank, as "rank 1: TEXT"; "" when all
/// are empty.
std::string broadcast_first_message(Communicator& all, const World& world, const std::string& text);

/// Collective. Broadcasts the `text` of rank `root`.
std::string broadcast_text(Communicator& all, const World& world, const std::string& text,
                           int root);

/// Collective. Merges the ranks' maps; for a key that several ranks hold, the lowest rank's value
/// wins.
std::map<std::string, std::string> together(Communicator& all, const World& world,
                                            const std::map<std::string, std::string>& own);

}  // namespace fluid
