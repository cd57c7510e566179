#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace fluid {

/// Detects concurrent use of an object by several threads. enter() costs one atomic operation.
class ConcurrentUseDetector {
 public:
  /// Makes the calling thread the owner. Reentrant. Throws UserError while another thread is the
  /// owner.
  void enter();
  void leave();

 private:
  std::atomic<std::thread::id> owner_ = {};
  int depth_ = 0;  ///< nesting depth of enter() calls
};

/// Owns an object that is not thread-safe. Any thread may use it, but only one at a time;
/// concurrent use throws UserError.
template <class T>
class SingleThreadAccess {
 public:
  /// Reserves the object for the calling thread for the lifetime of the guard.
  class Guard {
   public:
    Guard(ConcurrentUseDetector& owner, T* value) : owner_(owner), value_(value) { owner_.enter(); }
    ~Guard() { owner_.leave(); }
    Guard(const Guard&) = delete;
    T* operator->() const { return value_; }

   private:
    ConcurrentUseDetector& owner_;
    T* value_;
  };

  explicit SingleThreadAccess(std::unique_ptr<T> value) : value_(std::move(value)) {}
  Guard lock() const { return Guard(*owner_, value_.get()); }
  /// Reserves the object until the end of the full expression.
  Guard operator->() const { return lock(); }

 private:
  std::unique_ptr<ConcurrentUseDetector> owner_ = std::make_unique<ConcurrentUseDetector>();
  std::unique_ptr<T> value_;
};

}  // namespace fluid
