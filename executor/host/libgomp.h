#pragma once

// The functions of libgomp that Fluid calls. Only GCC ships libgomp's omp.h and compiles OpenMP's
// pragmas for libgomp, and Fluid shares the thread pool of oneDNN, which is libgomp's, whichever
// compiler builds it.

extern "C" {

/// Runs `body(data)` on a team of `threads` threads, the caller among them: what GCC compiles
/// `#pragma omp parallel num_threads(threads)` to, with `flags` 0.
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);

int omp_get_max_threads() noexcept;
int omp_get_num_procs() noexcept;
int omp_get_num_threads() noexcept;
int omp_get_thread_num() noexcept;
void omp_set_num_threads(int threads) noexcept;

}  // extern "C"
