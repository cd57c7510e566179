#include <algorithm>
#include <cmath>

#include "ops/arguments.h"
#include "ops/source/source.h"

namespace fluid {

namespace {

constexpr const char* kPerChannel = ": one number, or one per channel (dimension 1)";

/// Checks the values of attribute `name` (`mean` or `std`), if present.
void check_channels(const InferCtx& c, const std::string& name, bool positive) {
  const Attr* given = c.attrs().find(name);
  const auto* numbers = given == nullptr ? nullptr : std::get_if<std::vector<double>>(given);
  if (numbers == nullptr) return;
  for (const double x : *numbers) {
    c.require(std::isfinite(x) && (!positive || x > 0),
              "attribute '" + name + "' must be " + (positive ? "positive and " : "") + "finite");
  }
  const Shape& shape = c.in(0).shape;
  const auto n = static_cast<int64_t>(numbers->size());
  c.require(n <= 1 || (shape.rank() > 1 && shape[1] == Dim(n)),
            "attribute '" + name + "' has " + std::to_string(n) + " numbers, but the feed is " +
                c.in(0).str() + kPerChannel);
}

std::vector<Type> infer(const InferCtx& c) {
  static const std::vector<std::string> kKnown = {"scale", "mean", "std"};
  for (const auto& [name, attr] : c.attrs()) {
    if (is_pass_attribute(name)) continue;
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
      c.fail("no attribute '" + name + "'" + did_you_mean(name, kKnown));
    }
    c.require(is_float(c.in(0).dtype),
              "only floats are scaled and normalised, not " + c.in(0).str());
  }
  c.require(std::isfinite(c.attrs().get_or("scale", 1.0)), "attribute 'scale' must be finite");
  check_channels(c, "mean", false);
  check_channels(c, "std", true);
  return c.ins();
}

}  // namespace

OpDef data_op() {
  OpDef def =
      source_def("data",
                 "A feed, named by its symbol. Its first dimension is usually the batch. The fed "
                 "values are read as (x * scale - mean) / std.",
                 {{"scale", 1.0, "factor of the fed values"},
                  {"mean", std::vector<double>{},
                   std::string("subtracted from the scaled values") + kPerChannel + "; none: 0"},
                  {"std", std::vector<double>{},
                   std::string("divisor of the centred values") + kPerChannel + "; none: 1"}});
  def.infer = infer;
  def.open_attrs = true;
  return def;
}

}  // namespace fluid
