#include "passes/scan_plan.h"

#include "passes/bucket.h"

namespace fluid {

ScanPlan::ScanPlan(const ir::Op& scan, const Options& options)
    : parts(scan_parts(scan)), body(memory_plan(*parts.body, options)), bytes(body.transient) {
  for (size_t i = 0; i < parts.carries; ++i) {
    const int64_t size = align_up(scan.operands[i].type().bytes_at(options.batch));
    carries.push_back({bytes, bytes + size});
    bytes += 2 * size;
  }
  const auto add_copy = [&](std::map<size_t, int64_t>& copies, size_t i, const Type& sequence) {
    const int64_t element = sequence.bytes_at(options.batch) / parts.steps;
    if (element % kElementAlign == 0) return;
    copies[i] = bytes;
    bytes += align_up(element);
  };
  for (size_t i = parts.carries; i < parts.captures_begin(); ++i) {
    add_copy(operand_copies, i, scan.operands[i].type());
  }
  for (size_t i = parts.carries; i < scan.results.size(); ++i) {
    add_copy(result_copies, i, scan.results[i].type);
  }
}

}  // namespace fluid
