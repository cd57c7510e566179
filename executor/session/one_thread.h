#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace fluid {

/// Which thread is using an object. Entering costs one atomic operation.
class ThreadOwner {
 public:
  /// The thread that is inside may enter again. Throws UserError when another thread is inside.
  void enter();
  void leave();

 private:
  std::atomic<std::thread::id> owner_ = {};
  int depth_ = 0;  ///< the owner's
};

/// Owns an object that one thread at a time may use. Threads may take turns.
template <class T>
class OneThread {
 public:
  /// Access for as long as it lives.
  class Use {
   public:
    Use(ThreadOwner& owner, T* value) : owner_(owner), value_(value) { owner_.enter(); }
    ~Use() { owner_.leave(); }
    Use(const Use&) = delete;
    T* operator->() const { return value_; }

   private:
    ThreadOwner& owner_;
    T* value_;
  };

  explicit OneThread(std::unique_ptr<T> value) : value_(std::move(value)) {}
  Use use() const { return Use(*owner_, value_.get()); }
  /// Access until the end of the full expression.
  Use operator->() const { return use(); }

 private:
  std::unique_ptr<ThreadOwner> owner_ = std::make_unique<ThreadOwner>();
  std::unique_ptr<T> value_;
};

}  // namespace fluid
