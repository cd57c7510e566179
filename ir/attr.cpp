#include "ir/attr.h"

#include <algorithm>
#include <array>
#include <bit>

namespace fluid {

std::string_view attr_type_name(const Attr& attr) {
  static constexpr std::array<std::string_view, 9> kKinds = {
      "bool",  "int",          "float",          "string",         "type",
      "graph", "list of ints", "list of floats", "list of strings"};
  return kKinds[attr.index()];
}

const Attr* Attrs::find(std::string_view name) const {
  for (const Entry& e : entries_) {
    if (e.first == name) return &e.second;
  }
  return nullptr;
}

void Attrs::fail(std::string_view name, const Attr* attr) {
  const std::string quoted = "'" + std::string(name) + "'";
  if (attr == nullptr) throw InternalError("missing attribute " + quoted);
  throw InternalError("attribute " + quoted + " is a " + std::string(attr_type_name(*attr)));
}

void Attrs::set(std::string_view name, Attr value) {
  for (Entry& e : entries_) {
    if (e.first == name) {
      e.second = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::string(name), std::move(value));
}

void Attrs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& e) { return e.first == name; });
}

bool Attrs::operator==(const Attrs& other) const {
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  return std::ranges::equal(entries_, other.entries_, [&](const Entry& a, const Entry& b) {
    if (a.first != b.first || a.second.index() != b.second.index()) return false;
    if (const auto* number = std::get_if<double>(&a.second)) {
      return bits(*number) == bits(std::get<double>(b.second));
    }
    if (const auto* list = std::get_if<std::vector<double>>(&a.second)) {
      return std::ranges::equal(*list, std::get<std::vector<double>>(b.second), {}, bits, bits);
    }
    return a.second == b.second;
  });
}

}  // namespace fluid
