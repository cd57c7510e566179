#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>

namespace fluid {

/// Starts a thread. Throws DeviceError where the system gives none, as under `ulimit -u`.
std::thread start_thread(std::function<void()> work);

/// Runs `work` on `count` threads, the caller's among them, or on as many as the system gives, and
/// returns when all have ended. Throws what one of them threw.
void run_on_threads(size_t count, const std::function<void()>& work);

/// Throws DeviceError unless the system gives `count` threads besides the caller's at one time,
/// which `who` needs: "a pool of 4 threads".
void check_threads(size_t count, const std::string& who);

}  // namespace fluid
