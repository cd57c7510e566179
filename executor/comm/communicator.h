#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/options/world.h"
#include "ir/type.h"

namespace fluid {

/// What the processes of a world compute together. All ranks make the same calls in the same order,
/// from one thread at a time. A rank that dies, stops or stays away makes the call of every other
/// one throw a DeviceError that names it, within the time-out; from then on every call does.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Adds up `count` elements over all ranks, in place. The order of the additions depends on the
  /// world size and the element's index alone: all ranks get the same bits, at every run. Halves
  /// are added in f32 and rounded after each addition. `dtype` is a float.
  virtual void all_reduce(void* data, int64_t count, DType dtype) = 0;
  /// As all_reduce, but each rank gets its share alone (bucket_share in passes/bucket.h); the
  /// shares of others are 0 then.
  virtual void reduce_scatter(void* data, int64_t count, DType dtype) = 0;
  /// Gives every rank what each has in its share of `count` elements.
  virtual void all_gather(void* data, int64_t count, DType dtype) = 0;
  /// Copies rank `root`'s bytes to all.
  virtual void broadcast(void* data, int64_t bytes, int root) = 0;
  /// Returns when every rank has called it. Waits up to `patience` for ranks that give signs of
  /// life, as one that compiles or saves does, and no longer than the time-out for one that is
  /// stopped.
  virtual void meet(std::chrono::milliseconds patience) = 0;

  /// Of operations that the ranks make together by other means, as on their GPUs: counts one that
  /// begins, so that ranks that are late show, and returns its number.
  virtual int64_t enter() { return entered_++; }
  /// Ends the world when such an operation fails, or lasts longer than the time-out: throws a
  /// DeviceError that names the rank to blame. `said`: what the other means know of it, or "".
  [[noreturn]] virtual void fail(const std::string& what, int64_t number, const std::string& said);

  /// What a rank proposed first for `key`: `value`, where nobody has. Each rank calls it when it
  /// likes, and waits for no other.
  virtual std::string propose(const std::string& /*key*/, const std::string& value) {
    return value;
  }
  /// The key that some rank proposed for after `number` others, and what was proposed first;
  /// nothing where none has yet.
  virtual std::optional<std::pair<std::string, std::string>> proposal(int64_t /*number*/) {
    return std::nullopt;
  }

  /// For the calls that follow.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;

 private:
  int64_t entered_ = 0;
};

/// Meets the other ranks within `timeout`: by Gloo over TCP, or nobody in a world of one. Throws
/// UserError when ranks were started in ways that do not go together or the port is in use,
/// DeviceError when some are absent.
std::unique_ptr<Communicator> make_communicator(const World& world,
                                                std::chrono::milliseconds timeout);

}  // namespace fluid
