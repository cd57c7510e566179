#include "ir/threads.h"

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
class Team {
 public:
  ~Team() { join(); }
  /// Starts threads until there are `count`. When the system refuses one, returns its error
  /// message.
  std::optional<std::string> grow(size_t count, const std::function<void()>& work) {
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
int64_t threads_now() {
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
    Team helpers;
    if (count > 1) helpers.grow(count - 1, guarded);
    guarded();
  }
  if (failure) std::rethrow_exception(failure);
}

void check_threads(size_t count, const std::string& who) {
  const int64_t before = threads_now();
  std::latch counted(1);
  Team team;
  const auto why = team.grow(count, [&] { counted.wait(); });
  counted.count_down();
  const size_t given = team.size();
  team.join();
  // The kernel may still list a joined thread for a moment.
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries && threads_now() > before; ++i) std::this_thread::yield();
  if (!why) return;
  throw DeviceError(who + " needs " + std::to_string(count) +
                    " more while it starts, but the system creates only " + std::to_string(given) +
                    ": " + *why + "; take fewer threads");
}

}  // namespace fluid
