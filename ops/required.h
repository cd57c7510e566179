#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/ints.h"

namespace fluid {

/// A mandatory field of a struct: it has no default constructor, so an omitted initialiser does not
/// compile.
template <class T>
struct Required {
  T value;
  template <class U>
  requires(!std::same_as<std::remove_cvref_t<U>, Required> && std::constructible_from<T, U&&>)
      Required(U&& v)
      : value(std::forward<U>(v)) {}  // NOLINT: implicit, as an initialiser of T is
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};

/// A list that may be empty: `{.inputs = {}}`, which C++ cannot tell from an omitted initialiser.
template <class E>
struct Required<std::vector<E>> {
  std::vector<E> value;
  Required(std::initializer_list<E> list) : value(list) {}
  Required(std::vector<E> list) : value(std::move(list)) {}  // NOLINT: implicit
  const std::vector<E>& operator*() const { return value; }
  const std::vector<E>* operator->() const { return &value; }
};

/// A list of ints; an omitted initialiser and `{.kernel = {}}` do not compile.
template <>
struct Required<Ints> {
  Ints value;
  Required() = delete;
  Required(int one) : value(one) {}      // NOLINT: implicit, so that one number is a list
  Required(int64_t one) : value(one) {}  // NOLINT: implicit
  Required(std::initializer_list<int64_t> list) : value(list) {}
  Required(const std::vector<int64_t>& list) : value(list) {}  // NOLINT: implicit
  const Ints& operator*() const { return value; }
  const Ints* operator->() const { return &value; }
};

}  // namespace fluid
