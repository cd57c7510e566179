#include "tests/support/random_sources.h"

#include "ops/record.h"

namespace fluid::testing {

RandomSources::RandomSources(uint64_t seed)
    : random_(seed * 0x9E3779B97F4A7C15u + 1), net_("random" + std::to_string(seed)) {}

Value RandomSources::feed(const Shape& shape) {
  const std::string name = "x" + std::to_string(batch_.columns.size());
  Tensor t(f32, extents_of(shape));
  std::normal_distribution<double> normal;
  for (float& v : t.as<float>()) v = static_cast<float>(normal(random_));
  batch_.columns.emplace_back(name, t);
  return net_.data(name, shape, f32);
}

Value RandomSources::labels(const Shape& shape, int64_t classes) {
  const std::string name = "label" + std::to_string(batch_.columns.size());
  Tensor t(i64, extents_of(shape));
  for (int64_t& v : t.as<int64_t>()) {
    v = static_cast<int64_t>(below(static_cast<size_t>(classes)));
  }
  batch_.columns.emplace_back(name, t);
  return net_.data(name, shape, i64);
}

Value RandomSources::parameter(const Shape& shape) {
  return record_source(net_.ir().main(), "param", "p" + std::to_string(parameters_++),
                       {f32, shape, {}}, {{"init", std::string("normal")}}, {});
}

std::vector<int64_t> RandomSources::extents_of(const Shape& shape) const {
  std::vector<int64_t> extents;
  for (const Dim& d : shape) extents.push_back(d.at(batch_.size));
  return extents;
}

}  // namespace fluid::testing
