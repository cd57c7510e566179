#pragma once

#include <cstdint>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/sample_source.h"
#include "frontend/readers/sample_stream.h"

namespace fluid {

/// Copies the first `limit` samples of a pass, or all if there are fewer, to unlinked temporary
/// files. Returns a source over the files, with the name of the stream. Memory use does not depend
/// on the number of samples. Throws UserError if the files cannot be written. `args` holds the
/// option memory; see make_array_source().
SampleSourcePtr spool(SampleStream& stream, const StreamPass& pass, int64_t limit,
                      const DataArgs& args);

}  // namespace fluid
