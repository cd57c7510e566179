#pragma once

#include <cstdint>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/sample_source.h"
#include "frontend/readers/sample_stream.h"

namespace fluid {

/// Copies at most `limit` samples of a pass to unnamed temporary files in the directory TMPDIR, by
/// default /tmp. Returns a source that reads the samples by index, and has the name of `stream`.
/// Copying buffers one chunk of samples. For option memory of `args`, see make_array_source().
/// Throws UserError if the files cannot be written.
SampleSourcePtr spool(SampleStream& stream, const StreamPass& pass, int64_t limit,
                      const DataArgs& args);

}  // namespace fluid
