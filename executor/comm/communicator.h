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

/// Collectives among the ranks of a world. All ranks must start the same collectives in the same
/// order, from one thread at a time. If a rank dies, hangs or skips a collective, the collective
/// throws a DeviceError on every other rank within the timeout. The error names the failed rank.
/// All later calls throw too.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Sums `count` elements over all ranks, in place. The result is bit-identical on all ranks and
  /// in every run, because the order of additions depends only on the world size and the element's
  /// index. Half-precision values are added in f32 and rounded after each addition. `dtype` must be
  /// a float dtype.
  virtual void all_reduce(void* data, int64_t count, DType dtype) = 0;
  /// Sums `data` over all ranks like all_reduce(), but each rank receives only its own shard of the
  /// sum (bucket_shard() in passes/bucket.h). Sets the other shards of `data` to 0.
  virtual void reduce_scatter(void* data, int64_t count, DType dtype) = 0;
  /// Gathers the shards of all ranks into the `count` elements of `data`, in place. On entry, this
  /// rank's own shard must already be at its final position.
  virtual void all_gather(void* data, int64_t count, DType dtype) = 0;
  /// Broadcasts `bytes` bytes at `data` from rank `root`.
  virtual void broadcast(void* data, int64_t bytes, int root) = 0;
  /// Barrier. Waits up to `max_wait` for a rank that sends heartbeats, such as a rank that is still
  /// compiling. If a rank sends no heartbeats, waits only up to the timeout.
  virtual void barrier(std::chrono::milliseconds max_wait) = 0;

  /// Registers the start of a collective that another library, such as NCCL, runs. Returns the
  /// sequence number of the collective. After a failure, a rank that has registered fewer
  /// collectives than the others is reported as late.
  virtual int64_t begin_collective() { return collectives_started_++; }
  /// Reports that a collective of another library has failed or timed out. Throws a DeviceError
  /// that names the failed rank; later calls throw too. `collective`: name in the message, such as
  /// "all-reduce". `sequence_number`: result of begin_collective(). `cause`: error message of the
  /// library; "" for a timeout.
  [[noreturn]] virtual void throw_failure(const std::string& collective, int64_t sequence_number,
                                          const std::string& cause);

  /// Not collective. Proposes `value` for `key`. Returns the first value that any rank proposed for
  /// `key`.
  virtual std::string propose(const std::string& /*key*/, const std::string& value) {
    return value;
  }
  /// Not collective. Returns the key and value of proposal `index`. Indices count proposals from 0
  /// in order of arrival. Returns nullopt if there are fewer proposals.
  virtual std::optional<std::pair<std::string, std::string>> proposal(int64_t /*index*/) {
    return std::nullopt;
  }

  /// Sets the timeout of later calls.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;

 private:
  int64_t collectives_started_ = 0;
};

/// Connects the ranks of `world` by Gloo over TCP. Makes no connection if the world has a single
/// rank. Throws UserError when the ranks' settings conflict or the port is in use. Throws
/// DeviceError when a rank has not connected after `timeout`.
std::unique_ptr<Communicator> make_communicator(const World& world,
                                                std::chrono::milliseconds timeout);

/// Collective. Throws the same UserError on every rank unless `hash` is equal on all ranks. The
/// message lists the ranks that differ from rank 0. `subject`: name of the hashed object in the
/// message, such as "program".
void check_equal(Communicator& communicator, const World& world, const std::string& subject,
                 uint64_t hash);

/// Collective. Throws the same UserError on every rank unless `values`, a map from name to value,
/// is equal on all ranks. The message lists the ranks that differ from rank 0, and the differing
/// values of the lowest such rank. `subject`: name of the values in the message, such as "set of
/// options".
void check_equal(Communicator& communicator, const World& world, const std::string& subject,
                 const std::map<std::string, std::string>& values);

/// Collective. Broadcasts the `text` of the lowest rank whose text is not empty. Returns "rank 1:
/// TEXT", or "" if all texts are empty.
std::string broadcast_first_nonempty(Communicator& communicator, const World& world,
                                     const std::string& text);

/// Collective. Returns the `text` of rank `root` on all ranks.
std::string broadcast_text(Communicator& communicator, const World& world, const std::string& text,
                           int root);

/// Collective. Merges the ranks' maps. If several ranks have the same key, the value of the lowest
/// rank wins.
std::map<std::string, std::string> merge_by_lowest_rank(
    Communicator& communicator, const World& world,
    const std::map<std::string, std::string>& own_values);

}  // namespace fluid
