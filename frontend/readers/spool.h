#pragma once

#include <cstdint>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/sample_source.h"
#include "frontend/readers/sample_stream.h"

namespace fluid {

/// Copies the first `limit` samples of a pass, or all, to temporary files without a name, and
/// returns them as a source named as the stream, which reads by index. The files are in the
/// directory that TMPDIR names, by default /tmp. The memory does not depend on the number of
/// samples. Throws UserError if the files cannot be written. `args` holds the option memory; see
/// make_array_source().
SampleSourcePtr spool(SampleStream& stream, const StreamPass& pass, int64_t limit,
                      const DataArgs& args);

}  // namespace fluid
