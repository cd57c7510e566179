#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>

namespace fluid {

/// Starts a thread. Throws DeviceError when the system cannot create one, for example under `ulimit
/// -u`.
std::thread start_thread(std::function<void()> work);

/// Runs `work` on `count` threads, including the calling thread. Uses fewer threads if the system
/// cannot create `count`. Returns when all threads have finished. Rethrows an exception of `work`.
void run_on_threads(size_t count, const std::function<void()>& work);

/// Runs `task` with each index in [0, count), on at most `threads` threads. Starts no further task
/// after an exception, and rethrows that of the lowest index.
void run_tasks(size_t count, size_t threads, const std::function<void(size_t)>& task);

/// Throws DeviceError unless the process can create `count` more threads. `component` describes the
/// user of the threads for the message, for example "a pool of 4 threads".
void check_thread_limit(size_t count, const std::string& component);

}  // namespace fluid
