#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/error.h"
#include "tests/support/facts.h"

namespace fluid {

/// Expects that `call` throws a UserError whose text is one line and states the facts of
/// `expected`.
template <class F>
void expect_user_error(F call, const std::string& expected) {
  try {
    call();
  } catch (const UserError& e) {
    const std::string text = e.what();
    EXPECT_TRUE(states(text, expected));
    EXPECT_EQ(text.find('\n'), std::string::npos) << "more than one line: " << text;
    return;
  }
  ADD_FAILURE() << "no UserError, expected: " << expected;
}

/// Returns the message of the Error that `call` is expected to throw.
template <class Error, class F>
std::string error_of(F call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing of the kind was thrown";
  return "";
}

}  // namespace fluid
