#pragma once

// Declares the functions of libgomp that Fluid calls. Fluid shares libgomp's thread pool with
// oneDNN, whichever compiler builds Fluid. Only GCC ships libgomp's omp.h and compiles OpenMP
// pragmas for libgomp.

extern "C" {

/// Runs `body(data)` on a team of `threads` threads, which includes the caller. GCC compiles
/// `#pragma omp parallel num_threads(threads)` to this call, with `flags` 0.
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);

int omp_get_max_threads() noexcept;
int omp_get_num_procs() noexcept;
int omp_get_num_threads() noexcept;
int omp_get_thread_num() noexcept;
void omp_set_num_threads(int threads) noexcept;

}  // extern "C"
