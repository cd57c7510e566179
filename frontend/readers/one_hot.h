#pragma once

#include "frontend/readers/sample_source.h"

namespace fluid {

/// Returns the index of the column of labels that one_hot() encodes: the first i64 scalar whose
/// classes are known, or the first i64 scalar if `classes` is above 0. Throws UserError if there is
/// none.
size_t label_column(const SampleSource& source, int64_t classes);

/// Returns `source` with its labels as f32[classes]: 1 at the label, 0 elsewhere. `classes` is the
/// number of classes; 0: the number of SampleData::classes(). Throws UserError as label_column()
/// does. Reading throws UserError for a label outside [0, classes).
SampleSourcePtr one_hot(SampleSourcePtr source, int64_t classes = 0);

}  // namespace fluid
