#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fluid::testing {

/// Exchanges bytes between processes through files of a folder.
class HostRendezvous {
 public:
  /// Creates a folder for a rendezvous.
  static std::string make_folder();

  /// `identity`: distinguishes this process's GPU from others.
  HostRendezvous(std::string folder, int rank, int ranks, const std::string& identity);
  /// The last rank to leave removes the folder. So does a rank that aborted a collective, because
  /// no rank can continue.
  ~HostRendezvous();
  HostRendezvous(const HostRendezvous&) = delete;
  HostRendezvous& operator=(const HostRendezvous&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Whether every rank has arrived.
  bool all_here() const;
  /// Names two ranks that have the same GPU: "rank 0 and rank 1"; nullopt if there are none.
  std::optional<std::string> twins() const;

  /// Contributes `part` to the collective of `owner`, or polls it. A collective that another owner
  /// has started comes first. Returns whether all ranks have contributed.
  bool exchange(const void* owner, const std::string& what, std::span<const std::byte> part);
  /// Ends the collective and returns the contributions of all ranks. Throws if the ranks have
  /// started different collectives.
  std::vector<std::string> parts(const std::string& what);

  /// Aborts this collective and all later ones, without waiting for other ranks.
  void abort();
  bool aborted() const { return aborted_; }

 private:
  std::string file(const std::string& what, int rank) const;
  std::string contribution_file(int64_t number, int rank) const;

  std::string folder_;
  int rank_, ranks_;
  const void* owner_ = nullptr;
  int64_t number_ = 0;  ///< number of collectives that have started
  bool aborted_ = false, torn_ = false;
};

}  // namespace fluid::testing
