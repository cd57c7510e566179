#pragma once

#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/loc.h"

namespace fluid {

/// An error in the user's input. The message states the error, its location in the user's source
/// and how to fix it. `fluidrun` prints it and exits with 1.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& what) : std::runtime_error(what) {}
  /// Prefixes the message with the location, if known: "mnist.cpp:13: what".
  UserError(const Loc& loc, const std::string& what)
      : std::runtime_error(loc.is_known() ? loc.str() + ": " + what : what) {}
};

/// A bug in Fluid. `fluidrun` exits with 2.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A device failure: no driver, out of memory, a failed launch. `fluidrun` exits with 3.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the text of an error message. `what` is the text or a function that returns it. The
/// function runs only if the text is needed.
template <class What>
std::string message_text(const What& what) {
  if constexpr (std::is_invocable_v<const What&>) {
    return what();
  } else {
    return std::string(what);
  }
}

[[noreturn]] void throw_check_error(std::string_view what, std::source_location where);

/// Throws InternalError with the caller's file and line when `condition` is false. `what` is the
/// message: a string, or a function that returns one (see message_text()).
template <class What>
void check(bool condition, const What& what,
           std::source_location where = std::source_location::current()) {
  if (!condition) throw_check_error(message_text(what), where);
}

/// Returns " (did you mean 'relu'?)" for the candidate with the smallest edit distance to `name`,
/// if the distance is small. Otherwise suggests a candidate that starts with `name`, or that ends
/// with "_" and `name`. Returns "" if no candidate matches.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace fluid
