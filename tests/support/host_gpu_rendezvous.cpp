#include "tests/support/host_gpu_rendezvous.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fluid::testing {
namespace {

namespace fs = std::filesystem;

/// There at once and whole; not at all where its folder is gone.
void write_whole(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new", std::ios::binary) << text;
  std::error_code gone;
  fs::rename(path + ".new", path, gone);
}

std::string read_whole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

std::string HostRendezvous::make_folder() {
  std::string folder = (fs::temp_directory_path() / "fluid_gpus.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder to meet in");
  return folder;
}

HostRendezvous::HostRendezvous(std::string folder, int rank, int ranks, const std::string& identity)
    : folder_(std::move(folder)), rank_(rank), ranks_(ranks) {
  write_whole(file("rank", rank), identity);
}

HostRendezvous::~HostRendezvous() {
  std::error_code gone;
  if (!torn_ && fs::exists(folder_, gone)) {
    std::ofstream(file("left", rank_)).flush();
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!fs::exists(file("left", rank), gone)) return;
    }
  }
  fs::remove_all(folder_, gone);
}

std::string HostRendezvous::file(const std::string& what, int rank) const {
  return folder_ + "/" + what + "." + std::to_string(rank);
}

std::string HostRendezvous::contribution_file(int64_t number, int rank) const {
  return file(std::to_string(number), rank);
}

bool HostRendezvous::all_here() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!fs::exists(file("rank", rank))) return false;
  }
  return true;
}

std::optional<std::string> HostRendezvous::twins() const {
  for (int other = 0; other < ranks_; ++other) {
    for (int rank = 0; rank < other; ++rank) {
      if (read_whole(file("rank", rank)) != read_whole(file("rank", other))) continue;
      return "rank " + std::to_string(rank) + " and rank " + std::to_string(other);
    }
  }
  return std::nullopt;
}

bool HostRendezvous::exchange(const void* owner, const std::string& what,
                              std::span<const std::byte> part) {
  if (aborted_) return true;
  if (owner_ == nullptr) {
    owner_ = owner;
    const std::string bytes(reinterpret_cast<const char*>(part.data()), part.size());
    write_whole(contribution_file(++number_, rank_), what + '\n' + bytes);
  }
  if (owner_ != owner) return false;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!fs::exists(contribution_file(number_, rank))) return false;
  }
  return true;
}

std::vector<std::string> HostRendezvous::parts(const std::string& what) {
  owner_ = nullptr;
  std::vector<std::string> all;
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::string text = read_whole(contribution_file(number_, rank));
    const size_t end = text.find('\n');
    if (text.substr(0, end) != what) {
      throw std::runtime_error("rank " + std::to_string(rank) + " exchanges " +
                               text.substr(0, end) + ", rank " + std::to_string(rank_) + " " +
                               what);
    }
    all.push_back(text.substr(end + 1));
  }
  fs::remove(
      contribution_file(number_ - 1, rank_));  // all have read it, since they have begun this one
  return all;
}

void HostRendezvous::abort() {
  torn_ = torn_ || owner_ != nullptr;
  aborted_ = true;
}

}  // namespace fluid::testing
