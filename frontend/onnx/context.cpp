#include "frontend/onnx/context.h"

#include "ops/operators.h"

namespace fluid::onnx {

void Context::not_mapped(const std::string& reason) const {
  throw NotMapped(loc_, "ONNX operator '" + node_.op + "': " + reason);
}

Value Context::in(size_t i) const {
  if (!has(i)) not_mapped("input " + std::to_string(i) + " is left out");
  const Operand& operand = node_.inputs[i];
  return operand.value ? operand.value : record_constant_(*operand.constant);
}

Values Context::ins() const {
  Values all;
  for (size_t i = 0; i < arity(); ++i) all.push_back(in(i));
  return all;
}

const Tensor* Context::known(size_t i) const {
  return i < arity() && node_.inputs[i].constant ? &*node_.inputs[i].constant : nullptr;
}

const Tensor& Context::constant(size_t i) const {
  const Tensor* tensor = known(i);
  if (tensor == nullptr) not_mapped("input " + std::to_string(i) + " is not a constant");
  return *tensor;
}

std::vector<int64_t> Context::integers(size_t i) const { return elements(constant(i)); }

int64_t Context::integer(const char* name, int64_t fallback) const {
  return node_.attrs.get_or(name, fallback);
}

double Context::number(const char* name, double fallback) const {
  const Attr* attr = node_.attrs.find(name);
  const auto* whole = attr == nullptr ? nullptr : std::get_if<int64_t>(attr);
  return whole != nullptr ? static_cast<double>(*whole) : node_.attrs.get_or(name, fallback);
}

std::string Context::text(const char* name, const std::string& fallback) const {
  return node_.attrs.get_or(name, fallback);
}

std::vector<int64_t> Context::list(const char* name, const std::vector<int64_t>& fallback) const {
  return node_.attrs.get_or(name, fallback);
}

std::vector<double> Context::numbers(const char* name) const {
  const Attr* attr = node_.attrs.find(name);
  const auto* whole = attr == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(attr);
  if (whole != nullptr) return {whole->begin(), whole->end()};
  return node_.attrs.get_or(name, std::vector<double>{});
}

std::vector<std::string> Context::strings(const char* name) const {
  return node_.attrs.get_or(name, std::vector<std::string>{});
}

const Tensor* Context::tensor(const char* name) const {
  const auto found = node_.tensors.find(name);
  return found == node_.tensors.end() ? nullptr : &found->second;
}

Value Context::named(const std::string& tensor) const {
  const Operand found = node_.find ? node_.find(tensor) : Operand();
  if (!found.value) not_mapped("no value '" + tensor + "'");
  return found.value;
}

int64_t extent(const Context& c, Value x, int64_t axis) {
  const int64_t rank = x.shape().rank(), d = from_front(axis, rank);
  if (d < 0 || d >= rank) {
    c.not_mapped("axis " + std::to_string(axis) + " is out of range for " + x.type().str());
  }
  const Dim& dim = x.shape()[static_cast<size_t>(d)];
  if (!dim.is_constant()) {
    c.not_mapped("axis " + std::to_string(axis) + " of " + x.type().str() + " is not fixed");
  }
  return dim.size;
}

std::vector<int64_t> extents(const Context& c, Value x) {
  std::vector<int64_t> all;
  for (int64_t axis = 0; axis < x.shape().rank(); ++axis) all.push_back(extent(c, x, axis));
  return all;
}

std::vector<int64_t> elements(const Tensor& t) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < t.numel(); ++i) all.push_back(t.integer(i));
  return all;
}

Tensor tensor_of(const std::vector<int64_t>& elements) {
  return Tensor::of<int64_t>({static_cast<int64_t>(elements.size())}, elements);
}

Value axis_last(Value x, int64_t axis) {
  const int64_t rank = x.shape().rank(), from = from_front(axis, rank);
  if (from == rank - 1) return x;
  Ints perm;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.push_back(from);
  return transpose(x, {.perm = perm});
}

Value axis_back(Value x, int64_t axis) {
  const int64_t rank = x.shape().rank(), to = from_front(axis, rank);
  if (to == rank - 1) return x;
  Ints perm;
  for (int64_t d = 0; d + 1 < rank; ++d) {
    if (d == to) perm.push_back(rank - 1);
    perm.push_back(d);
  }
  return transpose(x, {.perm = perm});
}

Value from_start(Value index, int64_t extent) {
  const Value zero = scalar_like(index, 0);
  return where(less(index, zero), index + static_cast<double>(extent), index);
}

DType dtype_of(const Context& c, int64_t data_type) {
  switch (data_type) {
    case 1:
      return f32;
    case 2:
      return u8;
    case 6:
      return i32;
    case 7:
      return i64;
    case 9:
      return boolean;
    case 10:
      return f16;
    case 11:
      return f64;
    case 16:
      return bf16;
    default:
      c.not_mapped("no dtype for data type " + std::to_string(data_type));
  }
}

}  // namespace fluid::onnx
