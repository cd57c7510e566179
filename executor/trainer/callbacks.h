#pragma once

#include <functional>
#include <utility>

namespace fluid {

/// Appends `next` to `callback`: the new callback calls the old target, if any, and then `next`.
template <class... Args, class F>
void append_callback(std::function<void(Args...)>& callback, F next) {
  if (!callback) {
    callback = std::move(next);
    return;
  }
  callback = [first = std::move(callback), next = std::move(next)](Args... args) {
    first(args...);
    next(args...);
  };
}

}  // namespace fluid
