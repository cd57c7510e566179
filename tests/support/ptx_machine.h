#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fluid::testing {

/// Bytes that a thread may touch.
struct PtxBlock {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

/// A GPU that is none: reads PTX and runs its threads, one at a time, up to where they wait for
/// others. What a GPU would stop at, or do anything about, ends in an InternalError: an access out
/// of bounds or not at a multiple of its size, threads that wait for others that never come.
class PtxMachine {
 public:
  /// Throws InternalError for a text that is none.
  explicit PtxMachine(std::string_view text);
  ~PtxMachine();

  std::vector<std::string> entries() const;
  /// The block of memory that an address lies in; empty: none.
  using FindBlock = std::function<PtxBlock(const void* address)>;
  /// The order that threads run in.
  struct Order {
    bool backwards = false;      ///< the last thread of a group first
    bool must_be_given = false;  ///< by the kernel, wherever it matters (see ptx_races.h): slow
  };
  void run(std::string_view entry, int64_t groups, int64_t threads,
           std::span<const uint64_t> arguments, const FindBlock& find, const Order& order) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace fluid::testing
