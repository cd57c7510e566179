#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fluid::testing {

/// Processes that give each other bytes through files of one folder.
class HostRendezvous {
 public:
  /// A folder to meet in.
  static std::string make_folder();

  /// `identity`: tells this process's GPU from others.
  HostRendezvous(std::string folder, int rank, int ranks, const std::string& identity);
  /// The last to leave removes the folder; or one that ended an exchange in its midst, which nobody
  /// can go on with.
  ~HostRendezvous();
  HostRendezvous(const HostRendezvous&) = delete;
  HostRendezvous& operator=(const HostRendezvous&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Whether every rank has come.
  bool all_here() const;
  /// "rank 0 and rank 1", which have the same GPU; nothing where none have.
  std::optional<std::string> twins() const;

  /// Gives `part` to the others, or goes on with it, as long as `owner` asks; an exchange that
  /// another owner has begun comes first. Whether the others have given theirs.
  bool exchange(const void* owner, const std::string& what, std::span<const std::byte> part);
  /// Ends the exchange: what each rank gave. Throws when ranks mean different exchanges.
  std::vector<std::string> parts(const std::string& what);

  /// Ends this exchange and all that come: nobody is waited for.
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
