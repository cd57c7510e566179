#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/outputs.h"

namespace fluid {

/// The figures of an epoch out of those of its steps. A metric adds its sums and weights, so it is
/// exact over all samples; another scalar is averaged, each step weighted by its samples. Outputs
/// of more than one element are left out.
class Figures {
 public:
  void add(const Outputs& outputs, int64_t samples);
  std::vector<std::pair<std::string, double>> values() const;
  std::string text() const;  ///< "loss 0.1234  accuracy 0.9876"
  void clear() { sums_.clear(); }

 private:
  struct Sum {
    std::string name;
    double sum = 0;
    double weight = 0;
  };
  std::vector<Sum> sums_;
};

/// The scalars of one step.
std::vector<std::pair<std::string, double>> scalars(const Outputs& outputs);

/// "loss 0.1234  accuracy 0.9876"
std::string figures_text(const std::vector<std::pair<std::string, double>>& figures);

}  // namespace fluid
