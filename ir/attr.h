#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/error.h"
#include "ir/type.h"

namespace fluid {

/// A reference, by name, to a graph of the same program: `body = @g3`.
struct GraphRef {
  std::string name;
  bool operator==(const GraphRef&) const = default;
};

using Attr = std::variant<bool, int64_t, double, std::string, Type, GraphRef, std::vector<int64_t>,
                          std::vector<double>, std::vector<std::string>>;

/// Returns the name of the type of `attr` for messages and docs: "int", "list of ints", ...
std::string_view attr_type_name(const Attr& attr);

/// Named attributes in insertion order.
class Attrs {
 public:
  using Entry = std::pair<std::string, Attr>;

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries) : entries_(entries) {}

  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string_view name, Attr value);  ///< adds or replaces the entry `name`
  void erase(std::string_view name);

  /// Returns the value of `name`. Throws InternalError if the attribute is missing or has another
  /// type.
  template <class T>
  const T& get(std::string_view name) const {
    const Attr* attr = find(name);
    const T* value = attr != nullptr ? std::get_if<T>(attr) : nullptr;
    if (value == nullptr) fail(name, attr);
    return *value;
  }
  template <class T>
  T get_or(std::string_view name, T fallback) const {
    return has(name) ? get<T>(name) : fallback;
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  /// Compares floats by their bits: 0.0 differs from -0.0, and a NaN equals itself.
  bool operator==(const Attrs& other) const;

 private:
  [[noreturn]] static void fail(std::string_view name, const Attr* attr);

  std::vector<Entry> entries_;
};

}  // namespace fluid
