#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fluid::testing {

/// A memory block that threads may access.
struct PtxBlock {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

/// Interprets PTX: runs its threads one at a time, up to their barriers. Throws InternalError for
/// errors that a GPU would trap or ignore: misaligned accesses, accesses out of bounds, barriers
/// that some threads never reach.
class PtxMachine {
 public:
  /// Throws InternalError for text that is not PTX.
  explicit PtxMachine(std::string_view text);
  ~PtxMachine();

  std::vector<std::string> entries() const;
  /// Returns the memory block that contains an address; empty if there is none.
  using FindBlock = std::function<PtxBlock(const void* address)>;
  /// The order in which threads run.
  struct Order {
    bool backwards = false;      ///< runs the last thread of a block first
    bool must_be_given = false;  ///< by the kernel, wherever it matters (see ptx_races.h): slow
  };
  void run(std::string_view entry, int64_t groups, int64_t threads,
           std::span<const uint64_t> arguments, const FindBlock& find, const Order& order) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace fluid::testing
