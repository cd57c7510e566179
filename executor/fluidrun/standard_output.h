#pragma once

namespace fluid {

/// Flushes what was printed. A failure is kept for output_error(): stdio forgets its reason.
void flush_output();

/// Why something printed until now has not arrived, as an errno; 0 when all has. Flushes.
int output_error();

}  // namespace fluid
