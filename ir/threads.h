#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>

namespace fluid {

/// Starts a thread. Throws DeviceError when the system refuses, for example under `ulimit -u`.
std::thread start_thread(std::function<void()> work);

/// Runs `work` on `count` threads, including the caller's, or on fewer when the system refuses
/// more. Returns when all have finished. Rethrows an exception that `work` threw.
void run_on_threads(size_t count, const std::function<void()>& work);

/// Throws DeviceError unless the system can run `count` threads at once besides the caller's. `who`
/// names their user in the message: "a pool of 4 threads".
void check_threads(size_t count, const std::string& who);

}  // namespace fluid
