#pragma once

#include <string_view>

namespace fluid {

/// An attribute, bool, that any op may have: mixed precision leaves it in f32.
inline constexpr std::string_view kNoAmp = "no_amp";

/// Ops that this thread records while one lives run in f32 under mixed precision: they get the
/// attribute above, which is part of the program's file. Gradients follow their ops.
class NoAmp {
 public:
  NoAmp();
  ~NoAmp();
  NoAmp(const NoAmp&) = delete;

  static bool active();

  /// While one lives, guards around it do nothing: what passes record is not what the user does.
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
