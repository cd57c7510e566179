#pragma once

#include <string_view>

namespace fluid {

/// Name of a bool attribute that any op may have. Automatic mixed precision keeps such an op in
/// f32.
inline constexpr std::string_view kNoAmp = "no_amp";

/// RAII guard: ops that the current thread records during its lifetime get attribute kNoAmp. The
/// program file stores the attribute. The gradients of these ops run in f32 too.
class NoAmp {
 public:
  NoAmp();
  ~NoAmp();
  NoAmp(const NoAmp&) = delete;

  /// Whether the current thread has a NoAmp guard that is not suspended.
  static bool active();

  /// RAII guard: suspends the NoAmp guards of the current thread. For compiler passes, because
  /// NoAmp applies only to ops that the user records.
  class Suspend {
   public:
    Suspend();
    ~Suspend();
    Suspend(const Suspend&) = delete;

   private:
    int guards_;
  };
};

}  // namespace fluid
