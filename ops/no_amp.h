#pragma once

#include <string_view>

namespace fluid {

/// Name of a bool attribute of any op. Automatic mixed precision keeps an op with this attribute in
/// f32.
inline constexpr std::string_view kNoAmp = "no_amp";

/// RAII guard: ops that the current thread records during its lifetime get attribute kNoAmp. The
/// program file stores the attribute. The gradients of such ops run in f32 too.
class NoAmp {
 public:
  NoAmp();
  ~NoAmp();
  NoAmp(const NoAmp&) = delete;

  /// Whether the current thread has a NoAmp guard that is not suspended.
  static bool active();

  /// RAII: suspends the NoAmp guards of the current thread. Compiler passes use it, because kNoAmp
  /// applies only to ops that the user records.
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
