#pragma once

#include <cstdint>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/sample_source.h"
#include "frontend/readers/sample_stream.h"

namespace fluid {

/// Copies the first `limit` samples of a pass, or all if there are fewer, to unnamed temporary
/// files in the directory TMPDIR, by default /tmp. Returns a source that reads the copied samples
/// by index. The source has the name of `stream`. Copying buffers one chunk of samples. For option
/// memory of `args`, see make_array_source(). Throws UserError if the files cannot be written.
SampleSourcePtr spool(SampleStream& stream, const StreamPass& pass, int64_t limit,
                      const DataArgs& args);

}  // namespace fluid
