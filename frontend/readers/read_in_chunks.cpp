#include "frontend/readers/read_in_chunks.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "ir/threads.h"

namespace fluid {

void read_in_chunks(int64_t count, int64_t chunk, const ReadChunk& read) {
  const int64_t chunks = (count + chunk - 1) / chunk;
  std::mutex mutex;
  std::map<int64_t, std::function<void()>> finished;  // chunk -> function that uses it
  int64_t next_to_read = 0, next_to_use = 0;
  bool stops = false;
  const auto read_one = [&](int64_t index) -> std::function<void()> {
    try {
      return read(index * chunk, std::min(count, (index + 1) * chunk));
    } catch (...) {
      return [error = std::current_exception()] { std::rethrow_exception(error); };
    }
  };
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (!stops && next_to_read < chunks) {
      const int64_t index = next_to_read++;
      lock.unlock();
      std::function<void()> use = read_one(index);
      lock.lock();
      finished.emplace(index, std::move(use));
      while (!stops && finished.contains(next_to_use)) {
        stops = true;  // unless the function returns
        finished.extract(next_to_use).mapped()();
        stops = false;
        ++next_to_use;
      }
    }
  };
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  run_on_threads(static_cast<size_t>(std::min(cores, chunks)), work);
}

}  // namespace fluid
