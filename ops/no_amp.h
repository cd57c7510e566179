#pragma once

#include <string_view>

namespace fluid {

/// Bool attribute that any op may have. Automatic mixed precision keeps such an op in f32.
inline constexpr std::string_view kNoAmp = "no_amp";

/// RAII guard. Ops that the current thread records while a guard is alive get the attribute kNoAmp,
/// which is stored in the program file. Their gradients run in f32 too.
class NoAmp {
 public:
  NoAmp();
  ~NoAmp();
  NoAmp(const NoAmp&) = delete;

  static bool active();

  /// Suspends the guards of the current thread. Passes use it, because kNoAmp is for ops that the
  /// user records.
  class Paused {
   public:
    Paused();
    ~Paused();
    Paused(const Paused&) = delete;

   private:
    int guards_;
  };
};

}  // namespace fluid
