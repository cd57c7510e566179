#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fluid {

/// What an epoch came to, for people: a line of names, then one aligned line an epoch, on stdout.
class EpochTable {
 public:
  explicit EpochTable(int64_t epochs) : epochs_(epochs) {}

  /// The columns are the figures of the first epoch; `-` stands for one that a later epoch lacks.
  /// The best until then says so.
  void print(int64_t epoch, const std::vector<std::pair<std::string, double>>& figures,
             double ms_per_step, double seconds, bool best);

 private:
  void print_names(const std::vector<std::pair<std::string, double>>& figures);
  size_t epoch_width() const;

  int64_t epochs_;
  std::vector<std::string> names_;
};

}  // namespace fluid
