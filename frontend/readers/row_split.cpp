#include "frontend/readers/row_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/readers/split_mix64.h"
#include "ir/number.h"

namespace fluid {
namespace {

/// SplitMix64 stream that selects the held-out rows. The shuffles of the epochs use streams 0, 1,
/// 2...
constexpr uint64_t kSplitStream = 0x73706c6974;

double fraction_in(const std::string& text, const DataArgs& args) {
  const double fraction = parse_number<double>(text).value_or(0);
  if (!(fraction > 0 && fraction < 1)) {
    args.fail("option val=" + text + " must be a fraction between 0 and 1");
  }
  return fraction;
}

/// Selects `held` of `rows` rows by a Fisher-Yates shuffle. Returns the mask of the selected rows.
std::vector<bool> held_out_mask(int64_t rows, int64_t held, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  SplitMix64 random(seed, kSplitStream);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<bool> out(order.size());
  for (int64_t i = 0; i < held; ++i) {
    out[static_cast<size_t>(order[static_cast<size_t>(i)])] = true;
  }
  return out;
}

}  // namespace

const std::vector<std::string>& row_split_options() {
  static const std::vector<std::string> names = {"seed", "split", "val"};
  return names;
}

std::vector<bool> held_out_rows(int64_t rows, const DataArgs& args) {
  const std::string* val = args.find("val");
  if (val == nullptr) return {};
  const double fraction = fraction_in(*val, args);
  const auto seed = static_cast<uint64_t>(args.get_integer("seed", 0, 0));
  if (rows < 2) args.fail("a single row cannot be split");
  const auto share = static_cast<int64_t>(std::llround(fraction * static_cast<double>(rows)));
  return held_out_mask(rows, std::clamp<int64_t>(share, 1, rows - 1), seed);
}

SampleSourcePtr split_rows(SampleSourcePtr data, const DataArgs& args, bool has_splits) {
  if (args.find("val") == nullptr) {
    for (const char* option : {"split", "seed"}) {
      if (args.find(option) == nullptr || (has_splits && option == std::string("split"))) continue;
      args.fail(std::string("option ") + option + " needs val=0.2, the share of rows held out");
    }
    return data;
  }
  const bool trains = args.get_choice("split", args.split(), {"train", "val", "test"}) == "train";
  const std::vector<bool> out = held_out_rows(data->samples(), args);
  std::vector<int64_t> wanted;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] != trains) wanted.push_back(static_cast<int64_t>(i));
  }
  return select_samples(std::move(data), std::move(wanted));
}

}  // namespace fluid
