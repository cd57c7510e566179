#include "executor/session/slices.h"

#include <algorithm>

namespace fluid {

Options MicroBatch::options(Options step) const {
  step.slice = slice;
  // Shapes need a sample, although an empty micro-batch runs none.
  step.batch = std::max<int64_t>(samples, 1);
  return step;
}

std::vector<MicroBatch> split_into_micro_batches(int64_t batch, int64_t count) {
  count = std::min(count, batch);
  if (count <= 1) return {{batch == 0 ? Slice::empty : Slice::whole, 0, batch}};
  std::vector<MicroBatch> slices;
  for (int64_t i = 0, first = 0; i < count; ++i) {
    const int64_t samples = batch / count + (i < batch % count ? 1 : 0);
    const Slice slice = i == 0 ? Slice::first : i == count - 1 ? Slice::last : Slice::middle;
    slices.push_back({slice, first, samples});
    first += samples;
  }
  return slices;
}

}  // namespace fluid
