#pragma once

namespace fluid {

/// Lets idle threads of a pool of `threads` sleep soon. libgomp's spin for 300,000 rounds when they
/// wait, which takes the cores from whoever has work, and for 1,000 where it has started more
/// threads than there are processors (GOMP_SPINCOUNT in its manual). It reads its settings before
/// main; so this starts as many threads as that takes, which sleep until the process ends. Does
/// nothing where GOMP_SPINCOUNT or OMP_WAIT_POLICY is set, or where the threads cannot be had.
void limit_spinning(int threads);

}  // namespace fluid
