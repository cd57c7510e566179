#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"

namespace fluid {

/// Prints epochs as an aligned table on stdout: a line of names, then a line an epoch.
class EpochTable {
 public:
  explicit EpochTable(int64_t epochs) : epochs_(epochs) {}

  /// The columns are the values of the first epoch; `-` stands for a value that a later epoch
  /// lacks.
  void print(const EpochEvent& epoch);

 private:
  void print_names(const NamedScalars& values);
  size_t epoch_width() const;

  int64_t epochs_;
  std::vector<std::string> names_;
};

}  // namespace fluid
