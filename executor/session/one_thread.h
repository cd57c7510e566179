#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace fluid {

/// Detects concurrent use of an object. Entering costs one atomic operation.
class ThreadOwner {
 public:
  /// Makes the calling thread the owner. The owner may enter again. Throws UserError while another
  /// thread is the owner.
  void enter();
  void leave();

 private:
  std::atomic<std::thread::id> owner_ = {};
  int depth_ = 0;  ///< nesting depth of the owner's enter() calls
};

/// Owns an object that any thread may use, but only one at a time.
template <class T>
class OneThread {
 public:
  /// Holds the object for the calling thread until destroyed.
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
  /// Holds the object until the end of the full expression.
  Use operator->() const { return use(); }

 private:
  std::unique_ptr<ThreadOwner> owner_ = std::make_unique<ThreadOwner>();
  std::unique_ptr<T> value_;
};

}  // namespace fluid
