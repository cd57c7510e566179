#pragma once

namespace fluid {

/// Makes idle threads of a pool of `threads` threads sleep soon. A waiting libgomp thread spins for
/// 300,000 rounds, which takes cores from other work. It spins for 1,000 rounds if libgomp has
/// started more threads than there are processors (see GOMP_SPINCOUNT in its manual). libgomp reads
/// its settings before main(), so limit_spinning() starts that many threads. They sleep until the
/// process ends. Does nothing if GOMP_SPINCOUNT or OMP_WAIT_POLICY is set, or if the system refuses
/// the threads.
void limit_spinning(int threads);

}  // namespace fluid
