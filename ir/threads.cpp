#include "ir/threads.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <latch>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ir/error.h"

namespace fluid {
namespace {

/// A set of threads that the destructor joins.
class JoiningThreads {
 public:
  ~JoiningThreads() { join(); }
  /// Starts threads until there are `count`. Returns the system's error message if it cannot create
  /// a thread, else nullopt.
  std::optional<std::string> start(size_t count, const std::function<void()>& work) {
    try {
      threads_.reserve(count);
      while (threads_.size() < count) threads_.emplace_back(work);
    } catch (const std::system_error& e) {
      return e.code().message();
    } catch (const std::bad_alloc&) {
      return "Cannot allocate memory";
    }
    return std::nullopt;
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  size_t size() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

/// Returns the number of threads of this process.
int64_t process_thread_count() {
  std::error_code unknown;
  int64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/task", unknown), end;
       !unknown && it != end; it.increment(unknown)) {
    ++count;
  }
  return count;
}

}  // namespace

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& e) {
    throw DeviceError("the system cannot create another thread: " + e.code().message());
  }
}

void run_on_threads(size_t count, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::scoped_lock lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    JoiningThreads helpers;
    if (count > 1) helpers.start(count - 1, guarded);
    guarded();
  }
  if (failure) std::rethrow_exception(failure);
}

void run_tasks(size_t count, size_t threads, const std::function<void(size_t)>& task) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  run_on_threads(std::min(threads, count), [&] {
    for (size_t i; !failed && (i = next++) < count;) {
      try {
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
        failed = true;
      }
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void check_thread_limit(size_t count, const std::string& component) {
  const int64_t before = process_thread_count();
  std::latch release(1);
  JoiningThreads threads;
  const auto why = threads.start(count, [&] { release.wait(); });
  release.count_down();
  const size_t started = threads.size();
  threads.join();
  // /proc may still list a joined thread for a short time.
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries && process_thread_count() > before; ++i) std::this_thread::yield();
  if (!why) return;
  throw DeviceError(component + " needs " + std::to_string(count) +
                    " more while it starts, but the system creates only " +
                    std::to_string(started) + ": " + *why + "; take fewer threads");
}

}  // namespace fluid
