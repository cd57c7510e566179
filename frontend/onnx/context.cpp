#include "frontend/onnx/context.h"

#include "ops/operators.h"

namespace fluid::onnx {

void Context::fail_unsupported(const std::string& reason) const {
  throw Unsupported(loc_, "ONNX operator '" + node_.op + "': " + reason);
}

const Operand& Context::operand(size_t i) const {
  if (!has_input(i)) fail_unsupported("input " + std::to_string(i) + " is left out");
  return node_.inputs[i];
}

Value Context::input(size_t i) const { return value_of(operand(i)); }

Value Context::value_of(const Operand& operand) const {
  return operand.value ? operand.value : record_constant_(*operand.constant);
}

Values Context::inputs() const {
  Values all;
  for (size_t i = 0; i < num_inputs(); ++i) all.push_back(input(i));
  return all;
}

const Tensor* Context::find_constant(size_t i) const {
  return i < num_inputs() && node_.inputs[i].constant ? &*node_.inputs[i].constant : nullptr;
}

const Tensor& Context::constant(size_t i) const {
  const Tensor* tensor = find_constant(i);
  if (tensor == nullptr) fail_unsupported("input " + std::to_string(i) + " is not a constant");
  return *tensor;
}

std::vector<int64_t> Context::constant_integers(size_t i) const { return elements(constant(i)); }

int64_t Context::int_attr(const char* name, int64_t fallback) const {
  return node_.attrs.get_or(name, fallback);
}

double Context::float_attr(const char* name, double fallback) const {
  const Attr* attr = node_.attrs.find(name);
  const auto* whole = attr == nullptr ? nullptr : std::get_if<int64_t>(attr);
  return whole != nullptr ? static_cast<double>(*whole) : node_.attrs.get_or(name, fallback);
}

std::string Context::string_attr(const char* name, const std::string& fallback) const {
  return node_.attrs.get_or(name, fallback);
}

std::vector<int64_t> Context::ints_attr(const char* name,
                                        const std::vector<int64_t>& fallback) const {
  return node_.attrs.get_or(name, fallback);
}

std::vector<double> Context::floats_attr(const char* name) const {
  const Attr* attr = node_.attrs.find(name);
  const auto* whole = attr == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(attr);
  if (whole != nullptr) return {whole->begin(), whole->end()};
  return node_.attrs.get_or(name, std::vector<double>{});
}

std::vector<std::string> Context::strings_attr(const char* name) const {
  return node_.attrs.get_or(name, std::vector<std::string>{});
}

const Tensor* Context::tensor_attr(const char* name) const {
  const auto found = node_.tensors.find(name);
  return found == node_.tensors.end() ? nullptr : &found->second;
}

Value Context::tensor_value(const std::string& tensor) const {
  const Operand found = node_.find ? node_.find(tensor) : Operand();
  if (!found.value) fail_unsupported("no value '" + tensor + "'");
  return found.value;
}

const Graph& Context::graph_attr(const char* name) const {
  const auto found = node_.graphs.find(name);
  if (found == node_.graphs.end()) fail_unsupported(std::string("has no graph '") + name + "'");
  return found->second;
}

Operands Context::record_body(const Graph& body, const Operands& inputs) const {
  if (body.inputs.size() != inputs.size()) {
    fail_unsupported("its graph takes " + std::to_string(body.inputs.size()) + " inputs, not " +
                     std::to_string(inputs.size()));
  }
  return record_graph(graph_, body, inputs, record_constant_, node_.find, loc_);
}

int64_t dimension(const Context& c, Value x, int64_t axis) {
  const int64_t rank = x.shape().rank(), d = normalize_axis(axis, rank);
  if (d < 0 || d >= rank) {
    c.fail_unsupported("axis " + std::to_string(axis) + " is out of range for " + x.type().str());
  }
  return d;
}

int64_t extent(const Context& c, Value x, int64_t axis) {
  const Dim& dim = x.shape()[static_cast<size_t>(dimension(c, x, axis))];
  if (!dim.is_constant()) {
    c.fail_unsupported("axis " + std::to_string(axis) + " of " + x.type().str() + " is not fixed");
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

Tensor i64_tensor(const std::vector<int64_t>& elements) {
  return Tensor::of<int64_t>({static_cast<int64_t>(elements.size())}, elements);
}

Value move_axis(Value x, int64_t from, int64_t to) {
  const int64_t rank = x.shape().rank();
  from = normalize_axis(from, rank);
  to = normalize_axis(to, rank);
  if (from == to) return x;
  Ints perm;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  return transpose(x, {.perm = perm});
}

Value normalize_indices(Value index, int64_t extent) {
  const Value zero = scalar_like(index, 0);
  return where(less(index, zero), index + static_cast<double>(extent), index);
}

DType dtype_of(const Context& c, int64_t data_type) {
  switch (data_type) {
    case 1:
      return f32;
    case 2:
      return u8;
    case 3:
      return i8;
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
      c.fail_unsupported("no dtype for data type " + std::to_string(data_type));
  }
}

}  // namespace fluid::onnx
