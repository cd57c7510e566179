#pragma once

#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/loc.h"

namespace fluid {

/// The user's mistake: says what is wrong, where in the user's source, and what to do.
/// `fluidrun` prints it and exits with 1.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& what) : std::runtime_error(what) {}
  /// "mnist.cpp:13: what".
  UserError(const Loc& loc, const std::string& what)
      : std::runtime_error(loc.known() ? loc.str() + ": " + what : what) {}
};

/// A bug of Fluid's own. `fluidrun` exits with 2.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The device refused: no driver, out of memory, a failed launch. `fluidrun` exits with 3.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `what`, a text or a function that makes it: for messages that are made where they are needed.
template <class What>
std::string message_text(const What& what) {
  if constexpr (std::is_invocable_v<const What&>) {
    return what();
  } else {
    return std::string(what);
  }
}

[[noreturn]] void fail_check(std::string_view what, std::source_location where);

/// Throws InternalError naming the caller's line when `condition` is false. `what`: as
/// message_text().
template <class What>
void check(bool condition, const What& what,
           std::source_location where = std::source_location::current()) {
  if (!condition) fail_check(message_text(what), where);
}

/// " (did you mean 'relu'?)" when one of `candidates` is a near miss of `name` or begins with it,
/// else "".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace fluid
