#include "executor/comm/gloo.h"

#include <fmt/format.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "executor/comm/half_sum.h"
#include "executor/comm/signals.h"
#include "executor/comm/store.h"
#include "ir/error.h"
#include "ir/threads.h"
#include "passes/bucket.h"

namespace fluid::comm {

namespace {

/// Maximum time for which record_error() waits for the store to notice a dead rank.
constexpr Duration kDeathDetectionTime{1000};

/// Adapts comm::Store to the store interface of Gloo.
class GlooStore final : public ::gloo::rendezvous::Store {
 public:
  explicit GlooStore(comm::Store& store) : store_(store) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set("gloo/" + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    std::string value = store_.get("gloo/" + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }

 private:
  comm::Store& store_;
};

/// Holds the Gloo buffer of the running collective. Gloo's send blocks until the timeout if the
/// peer died before it was ready to receive. Once the store reports the dead rank, Heartbeat calls
/// interrupt() to abort the send.
class ActiveBuffer {
 public:
  using Buffer = ::gloo::transport::UnboundBuffer;

  /// Makes `buffer` the active buffer for the lifetime of the Scope. `buffer` must outlive the
  /// Scope.
  class Scope {
   public:
    Scope(ActiveBuffer& active_buffer, Buffer* buffer) : active_buffer_(active_buffer) {
      active_buffer_.set(buffer);
    }
    ~Scope() { active_buffer_.set(nullptr); }
    Scope(const Scope&) = delete;

   private:
    ActiveBuffer& active_buffer_;
  };

  /// Aborts the pending sends and receives of the active buffer, if there is one. The running
  /// collective then fails.
  void interrupt() {
    std::lock_guard lock(mutex_);
    if (buffer_ == nullptr) return;
    interrupted_ = true;
    buffer_->abortWaitSend();
    buffer_->abortWaitRecv();
  }
  bool interrupted() const { return interrupted_; }

 private:
  void set(Buffer* buffer) {
    std::lock_guard lock(mutex_);
    buffer_ = buffer;
  }

  std::mutex mutex_;
  Buffer* buffer_ = nullptr;
  std::atomic<bool> interrupted_ = false;
};

/// Sends heartbeats to the store from its own thread. Interrupts the running collective once the
/// store reports a failed rank.
class Heartbeat {
 public:
  Heartbeat(Store& store, ActiveBuffer& active_buffer)
      : store_(store), active_buffer_(active_buffer) {
    ScopedSignalBlock guard(ScopedSignalBlock::SignalSet::all);
    thread_ = start_thread([this] { run(); });
  }
  ~Heartbeat() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Sends a heartbeat now. Recomputes the interval from the store's current timeout.
  void send_heartbeat() {
    {
      std::lock_guard lock(mutex_);
      send_now_ = true;
    }
    wake_.notify_all();
  }

  /// Number of collectives that this rank has started.
  std::atomic<int64_t> collectives_started = 0;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      send_now_ = false;
      lock.unlock();
      store_.send_heartbeat(collectives_started);
      if (store_.has_failed()) active_buffer_.interrupt();
      lock.lock();
      wake_.wait_for(lock, heartbeat_interval(store_.timeout()),
                     [this] { return stopping_ || send_now_; });
    }
  }

  Store& store_;
  ActiveBuffer& active_buffer_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, send_now_ = false;
  std::thread thread_;
};

template <class T>
void add(void* out, const void* a, const void* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    static_cast<T*>(out)[i] = static_cast<const T*>(a)[i] + static_cast<const T*>(b)[i];
  }
}

using AddFunction = void (*)(void*, const void*, const void*, size_t);

AddFunction add_function(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return add<double>;
    case DType::f32:
      return add<float>;
    case DType::f16:
      return add_f16;
    case DType::bf16:
      return add_bf16;
    default:
      throw InternalError("only floats are summed over ranks");
  }
}

/// Sets the output buffer of a Gloo collective. Its element type is an unsigned integer of the size
/// of `dtype`: Gloo needs only the element size, and the reduce function interprets the elements.
template <class Options>
void set_output(Options& options, std::unique_ptr<ActiveBuffer::Buffer> buffer, DType dtype) {
  switch (size_of(dtype)) {
    case 8:
      return options.template setOutput<uint64_t>(std::move(buffer));
    case 4:
      return options.template setOutput<uint32_t>(std::move(buffer));
    default:
      return options.template setOutput<uint16_t>(std::move(buffer));
  }
}

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const World& world, Duration timeout)
      : world_(world),
        timeout_(timeout),
        store_(world, timeout),
        heartbeat_(store_, active_buffer_) {
    run("rendezvous", [&] {
      auto device = make_device();
      context_ = std::make_shared<::gloo::rendezvous::Context>(world.rank, world.size);
      context_->setTimeout(timeout);
      GlooStore store(store_);
      context_->connectFullMesh(store, device);
    });
  }

  ~GlooCommunicator() override {
    ScopedSignalBlock guard(ScopedSignalBlock::SignalSet::pipe);
    context_.reset();
  }

  void all_reduce(void* data, int64_t count, DType dtype) override {
    if (count == 0) return;
    run("all-reduce", [&] {
      auto buffer = buffer_of(data, count, dtype);
      ::gloo::AllreduceOptions options(context_);
      const ActiveBuffer::Scope scope(active_buffer_, buffer.get());
      set_output(options, std::move(buffer), dtype);
      options.setReduceFunction(add_function(dtype));
      // The ring algorithm sums each element on one rank and sends the sum to all others, so the
      // results are bit-identical on all ranks.
      options.setAlgorithm(::gloo::AllreduceOptions::Algorithm::RING);
      options.setTimeout(timeout_);
      ::gloo::allreduce(options);
    });
  }

  void reduce_scatter(void* data, int64_t count, DType dtype) override {
    const auto at = [&](int64_t element) {
      return static_cast<std::byte*>(data) + element * size_of(dtype);
    };
    for (int rank = 0; rank < world_.size; ++rank) {
      const BucketShard shard = bucket_shard(count, world_.size, rank);
      if (shard.size() == 0) continue;
      run("reduce-scatter", [&] {
        auto buffer = buffer_of(at(shard.begin), shard.size(), dtype);
        ::gloo::ReduceOptions options(context_);
        const ActiveBuffer::Scope scope(active_buffer_, buffer.get());
        set_output(options, std::move(buffer), dtype);
        options.setRoot(rank);
        options.setReduceFunction(add_function(dtype));
        options.setTimeout(timeout_);
        ::gloo::reduce(options);
      });
      if (rank != world_.rank) std::fill(at(shard.begin), at(shard.end), std::byte{0});
    }
  }

  void all_gather(void* data, int64_t count, DType dtype) override {
    if (count == 0) return;
    std::vector<size_t> bytes;
    for (int rank = 0; rank < world_.size; ++rank) {
      bytes.push_back(
          static_cast<size_t>(bucket_shard(count, world_.size, rank).size() * size_of(dtype)));
    }
    run("all-gather", [&] {
      auto buffer = buffer_of(data, count, dtype);
      ::gloo::AllgathervOptions options(context_);
      const ActiveBuffer::Scope scope(active_buffer_, buffer.get());
      options.setOutput<char>(std::move(buffer), std::move(bytes));
      options.setTimeout(timeout_);
      ::gloo::allgatherv(options);
    });
  }

  void broadcast(void* data, int64_t bytes, int root) override {
    if (bytes == 0) return;
    run("broadcast", [&] {
      auto buffer = buffer_of(data, bytes, DType::u8);
      ::gloo::BroadcastOptions options(context_);
      const ActiveBuffer::Scope scope(active_buffer_, buffer.get());
      options.setOutput<char>(std::move(buffer));
      options.setRoot(root);
      options.setTimeout(timeout_);
      ::gloo::broadcast(options);
    });
  }

  void barrier(Duration max_wait) override {
    run("barrier", [&] {
      store_.send_heartbeat(heartbeat_.collectives_started);
      store_.barrier(max_wait);
    });
  }

  int64_t begin_collective() override {
    if (!failure_.empty()) throw DeviceError(failure_);
    return heartbeat_.collectives_started++;
  }

  [[noreturn]] void throw_failure(const std::string& collective, int64_t sequence_number,
                                  const std::string& cause) override {
    const Duration wait = heartbeat_timeout(store_.timeout());
    cause.empty() ? record_diagnosis(collective, sequence_number, wait)
                  : record_error(collective, sequence_number, cause, wait);
    throw DeviceError(failure_);
  }

  std::string propose(const std::string& key, const std::string& value) override {
    return store_.propose(key, value);
  }
  std::optional<std::pair<std::string, std::string>> proposal(int64_t index) override {
    return store_.proposal(index);
  }

  void set_timeout(Duration timeout) override {
    timeout_ = timeout;
    store_.set_timeout(timeout);
    heartbeat_.send_heartbeat();
  }

 private:
  std::unique_ptr<ActiveBuffer::Buffer> buffer_of(void* data, int64_t count, DType dtype) const {
    return context_->createUnboundBuffer(data, static_cast<size_t>(count * size_of(dtype)));
  }

  std::shared_ptr<::gloo::transport::Device> make_device() {
    // CreateDevice() starts a thread, which must not receive signals.
    ScopedSignalBlock guard(ScopedSignalBlock::SignalSet::all);
    return ::gloo::transport::tcp::CreateDevice(store_.address().c_str());
  }

  /// Runs one collective. On failure, queries the store for the failed rank, because Gloo's errors
  /// name only addresses and files.
  template <class F>
  void run(const char* what, F operation) {
    const int64_t number = begin_collective();
    Clock::time_point start = Clock::now();
    bool done = false;
    try {
      ScopedSignalBlock guard(ScopedSignalBlock::SignalSet::pipe);
      operation();
      done = !active_buffer_.interrupted();
    } catch (const std::exception&) {
      done = false;
    }
    if (done) return;
    auto left = timeout_ - std::chrono::duration_cast<Duration>(Clock::now() - start);
    record_diagnosis(what, number,
                     std::clamp(left, Duration(0), heartbeat_timeout(store_.timeout())));
    throw DeviceError(failure_);
  }

  /// Stores the store's diagnosis in failure_, the message of all later errors. Waits up to `wait`
  /// until the store is certain which rank failed.
  void record_diagnosis(const std::string& what, int64_t number, Duration wait) {
    store_.send_heartbeat(heartbeat_.collectives_started);
    set_failure(what, number, store_.diagnose(wait, number));
  }

  /// Stores `cause`, an error message of this rank, in failure_, the message of all later errors.
  /// If the store is certain that another rank died, failure_ names that rank first.
  void record_error(const std::string& what, int64_t number, const std::string& cause,
                    Duration wait) {
    const std::string dead_rank = store_.diagnose_if_certain(std::min(wait, kDeathDetectionTime));
    set_failure(what, number, dead_rank.empty() ? cause : dead_rank + "; " + cause);
  }

  void set_failure(const std::string& what, int64_t number, const std::string& why) {
    failure_ = fmt::format("rank {} cannot complete {} {}: {}", world_.rank, what, number, why);
  }

  World world_;
  Duration timeout_;
  Store store_;
  ActiveBuffer active_buffer_;
  Heartbeat heartbeat_;
  std::shared_ptr<::gloo::rendezvous::Context> context_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo(const World& world, Duration timeout) {
  return std::make_unique<GlooCommunicator>(world, timeout);
}

}  // namespace fluid::comm
