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

constexpr Duration kDeathDetectionTime{
    1000};  ///< time for the store to notice that another rank died

/// Adapts Store to Gloo's interface.
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

/// The buffer of the collective in progress. If a peer dies just before it is ready to receive,
/// Gloo's send blocks until the time-out. interrupt() unblocks it as soon as the store reports the
/// death.
class InProgress {
 public:
  using Buffer = ::gloo::transport::UnboundBuffer;

  /// While it lives, waits for `buffer` can be interrupted. `buffer` must outlive it.
  class Scope {
   public:
    Scope(InProgress& in_progress, Buffer* buffer) : in_progress_(in_progress) {
      in_progress_.set(buffer);
    }
    ~Scope() { in_progress_.set(nullptr); }
    Scope(const Scope&) = delete;

   private:
    InProgress& in_progress_;
  };

  /// Aborts the current wait, if any. The collective has failed then.
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

/// Sends heartbeats to the store from its own thread. Interrupts the collective in progress once
/// the store reports a failed rank.
class Heartbeat {
 public:
  Heartbeat(Store& store, InProgress& in_progress) : store_(store), in_progress_(in_progress) {
    SignalsBlocked guard(SignalsBlocked::Which::all);
    thread_ = start_thread([this] { run(); });
  }
  ~Heartbeat() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Sends a heartbeat now, and adopts the store's current time-out for the interval.
  void send_heartbeat() {
    {
      std::lock_guard lock(mutex_);
      hurried_ = true;
    }
    wake_.notify_all();
  }

  std::atomic<int64_t> entered = 0;  ///< number of collectives started

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      hurried_ = false;
      lock.unlock();
      store_.beat(entered);
      if (store_.failed()) in_progress_.interrupt();
      lock.lock();
      wake_.wait_for(lock, heartbeat_interval(store_.timeout()),
                     [this] { return ended_ || hurried_; });
    }
  }

  Store& store_;
  InProgress& in_progress_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false, hurried_ = false;
  std::thread thread_;
};

template <class T>
void add(void* out, const void* a, const void* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    static_cast<T*>(out)[i] = static_cast<const T*>(a)[i] + static_cast<const T*>(b)[i];
  }
}

using Adder = void (*)(void*, const void*, const void*, size_t);

Adder adder(DType dtype) {
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

/// Gloo uses the type only for the element size; the reduce function adds.
template <class Options>
void set_output(Options& options, std::unique_ptr<InProgress::Buffer> buffer, DType dtype) {
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
      : world_(world), timeout_(timeout), store_(world, timeout), heartbeat_(store_, in_progress_) {
    run("rendezvous", [&] {
      auto device = make_device();
      context_ = std::make_shared<::gloo::rendezvous::Context>(world.rank, world.size);
      context_->setTimeout(timeout);
      GlooStore store(store_);
      context_->connectFullMesh(store, device);
    });
  }

  ~GlooCommunicator() override {
    SignalsBlocked guard(SignalsBlocked::Which::pipe);
    context_.reset();
  }

  void all_reduce(void* data, int64_t count, DType dtype) override {
    if (count == 0) return;
    run("all-reduce", [&] {
      auto buffer = buffer_of(data, count, dtype);
      ::gloo::AllreduceOptions options(context_);
      const InProgress::Scope scope(in_progress_, buffer.get());
      set_output(options, std::move(buffer), dtype);
      options.setReduceFunction(adder(dtype));
      // One rank sums each element, so all ranks get the same bits.
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
      const BucketShard share = bucket_shard(count, world_.size, rank);
      if (share.size() == 0) continue;
      run("reduce-scatter", [&] {
        auto buffer = buffer_of(at(share.begin), share.size(), dtype);
        ::gloo::ReduceOptions options(context_);
        const InProgress::Scope scope(in_progress_, buffer.get());
        set_output(options, std::move(buffer), dtype);
        options.setRoot(rank);
        options.setReduceFunction(adder(dtype));
        options.setTimeout(timeout_);
        ::gloo::reduce(options);
      });
      if (rank != world_.rank) std::fill(at(share.begin), at(share.end), std::byte{0});
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
      const InProgress::Scope scope(in_progress_, buffer.get());
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
      const InProgress::Scope scope(in_progress_, buffer.get());
      options.setOutput<char>(std::move(buffer));
      options.setRoot(root);
      options.setTimeout(timeout_);
      ::gloo::broadcast(options);
    });
  }

  void barrier(Duration patience) override {
    run("barrier", [&] {
      store_.beat(heartbeat_.entered);
      store_.barrier(patience);
    });
  }

  int64_t enter() override {
    if (!failure_.empty()) throw DeviceError(failure_);
    return heartbeat_.entered++;
  }

  [[noreturn]] void fail(const std::string& what, int64_t number,
                         const std::string& said) override {
    const Duration wait = silence(store_.timeout());
    said.empty() ? blame(what, number, wait) : blame_for(what, number, said, wait);
    throw DeviceError(failure_);
  }

  std::string propose(const std::string& key, const std::string& value) override {
    return store_.propose(key, value);
  }
  std::optional<std::pair<std::string, std::string>> proposal(int64_t number) override {
    return store_.proposal(number);
  }

  void set_timeout(Duration timeout) override {
    timeout_ = timeout;
    store_.set_timeout(timeout);
    heartbeat_.send_heartbeat();
  }

 private:
  std::unique_ptr<InProgress::Buffer> buffer_of(void* data, int64_t count, DType dtype) const {
    return context_->createUnboundBuffer(data, static_cast<size_t>(count * size_of(dtype)));
  }

  std::shared_ptr<::gloo::transport::Device> make_device() {
    SignalsBlocked guard(SignalsBlocked::Which::all);  // it starts a thread
    return ::gloo::transport::tcp::CreateDevice(store_.address().c_str());
  }

  /// Runs one collective. Gloo's errors name only addresses and files, so the store is asked which
  /// rank to blame.
  template <class F>
  void run(const char* what, F operation) {
    const int64_t number = enter();
    Clock::time_point start = Clock::now();
    bool done = false;
    try {
      SignalsBlocked guard(SignalsBlocked::Which::pipe);
      operation();
      done = !in_progress_.interrupted();
    } catch (const std::exception&) {
      done = false;
    }
    if (done) return;
    auto left = timeout_ - std::chrono::duration_cast<Duration>(Clock::now() - start);
    blame(what, number, std::clamp(left, Duration(0), silence(store_.timeout())));
    throw DeviceError(failure_);
  }

  /// Sets the failure that this and all later calls throw. Its text is the store's verdict. Waits
  /// up to `wait` until the store knows for certain which rank failed.
  void blame(const std::string& what, int64_t number, Duration wait) {
    store_.beat(heartbeat_.entered);
    set_failure(what, number, store_.verdict(wait, number));
  }

  /// Sets the failure from the error `said`. Names another rank only if the store is certain that
  /// the other rank died. Otherwise this rank itself failed.
  void blame_for(const std::string& what, int64_t number, const std::string& said, Duration wait) {
    const std::string culprit = store_.certain_verdict(std::min(wait, kDeathDetectionTime));
    set_failure(what, number, culprit.empty() ? said : culprit + "; " + said);
  }

  void set_failure(const std::string& what, int64_t number, const std::string& why) {
    failure_ = fmt::format("rank {} cannot complete {} {}: {}", world_.rank, what, number, why);
  }

  World world_;
  Duration timeout_;
  Store store_;
  InProgress in_progress_;
  Heartbeat heartbeat_;
  std::shared_ptr<::gloo::rendezvous::Context> context_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo(const World& world, Duration timeout) {
  return std::make_unique<GlooCommunicator>(world, timeout);
}

}  // namespace fluid::comm
