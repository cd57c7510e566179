#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/ints.h"

namespace fluid {

/// A mandatory struct field of type T. Required has no default constructor, so that omitting the
/// initialiser of the field does not compile.
template <class T>
struct Required {
  T value;
  template <class U>
  requires(!std::same_as<std::remove_cvref_t<U>, Required> && std::constructible_from<T, U&&>)
      Required(U&& v)
      : value(std::forward<U>(v)) {}  // NOLINT: implicit conversion
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};

/// A mandatory field that is a list. The list may be empty, as in `{.inputs = {}}`. An omitted
/// initialiser compiles too, because C++ treats it as `{}`.
template <class E>
struct Required<std::vector<E>> {
  std::vector<E> value;
  Required(std::initializer_list<E> list) : value(list) {}
  Required(std::vector<E> list) : value(std::move(list)) {}  // NOLINT: implicit conversion
  const std::vector<E>& operator*() const { return value; }
  const std::vector<E>* operator->() const { return &value; }
};

/// A mandatory field that is a list of ints. Omitting the initialiser does not compile, and neither
/// does an empty list, as in `{.kernel = {}}`.
template <>
struct Required<Ints> {
  Ints value;
  Required() = delete;
  Required(int one) : value(one) {}      // NOLINT: implicit conversion from one int
  Required(int64_t one) : value(one) {}  // NOLINT: implicit conversion
  Required(std::initializer_list<int64_t> list) : value(list) {}
  Required(const std::vector<int64_t>& list) : value(list) {}  // NOLINT: implicit conversion
  const Ints& operator*() const { return value; }
  const Ints* operator->() const { return &value; }
};

}  // namespace fluid
