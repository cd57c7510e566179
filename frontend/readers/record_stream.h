#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/readers/array_source.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/sample_source.h"
#include "ir/tensor.h"

namespace fluid {

/// Samples that are read once, in order, and whose number is not known before the end.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  /// Returns the next samples, one tensor a column, whose first dimension counts the samples; an
  /// empty dataset at the end. Throws UserError if they cannot be read.
  virtual Dataset next() = 0;
};

/// Copies the first `limit` samples of a stream, or all, to temporary files without a name, and
/// returns them as a source, which reads by index. The memory does not depend on the number of
/// samples. Throws UserError if the columns change between two calls of next(), or for no sample.
/// `args` holds the option memory; see make_array_source().
SampleSourcePtr spool(RecordStream& stream, int64_t limit, const DataArgs& args,
                      const std::string& name);

}  // namespace fluid
