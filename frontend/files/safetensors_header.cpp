#include "frontend/files/safetensors_header.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 9> kNames = {{{DType::f64, "F64"},
                                                                       {DType::f32, "F32"},
                                                                       {DType::f16, "F16"},
                                                                       {DType::bf16, "BF16"},
                                                                       {DType::i64, "I64"},
                                                                       {DType::i32, "I32"},
                                                                       {DType::u8, "U8"},
                                                                       {DType::boolean, "BOOL"},
                                                                       {DType::i8, "I8"}}};

/// A SAX parser that accepts exactly the JSON that the format allows. nlohmann's DOM parser is not
/// strict enough: it keeps the last of several duplicate keys, and wraps negative numbers.
class HeaderSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderSax(TensorHeader& header, const std::string& source_name)
      : header_(header), source_name_(source_name) {}

  bool key(string_t& text) override {
    if (depth_ == 1) {
      if (!names_.insert(text).second) fail("the key '" + text + "' is there twice");
      in_metadata_ = text == "__metadata__";
      if (!in_metadata_) header_.entries.push_back({.name = text});
      fields_.clear();
      return true;
    }
    if (!fields_.insert(text).second) fail(location() + " has the key '" + text + "' twice");
    field_ = text;
    if (!in_metadata_ && text != "dtype" && text != "shape" && text != "data_offsets") {
      fail(location() + " has an unknown key '" + text + "'");
    }
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ > 1 || list_) unexpected("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_) {
      if (fields_.size() != 3) fail(location() + " needs dtype, shape and data_offsets");
    }
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || list_ || in_metadata_ || field_ == "dtype") unexpected("a list");
    list_ = true;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    list_ = false;
    TensorEntry& entry = header_.entries.back();
    if (field_ == "shape") {
      entry.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2) fail(location() + " needs two data_offsets");
    entry.begin = numbers_[0];
    entry.end = numbers_[1];
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!list_) unexpected("a number");
    if (value > INT64_MAX) fail(location() + " has a number over 2^63 in " + field_);
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ != 2 || list_ || (!in_metadata_ && field_ != "dtype")) unexpected("a string");
    if (in_metadata_) {
      header_.metadata[field_] = value;
      return true;
    }
    for (const auto& [dtype, name] : kNames) {
      if (name == value) {
        header_.entries.back().dtype = dtype;
        return true;
      }
    }
    fail(location() + " has dtype '" + value + "', which Fluid does not read");
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a bool"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override {
    unexpected("the number " + text);
  }
  bool binary(binary_t&) override { throw InternalError("binary data in JSON"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail("the header is not JSON at byte " + std::to_string(position));
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw UserError(source_name_ + ": " + text);
  }
  [[noreturn]] void unexpected(const std::string& value) const {
    fail(location() + " has " + value + " where the format allows none");
  }
  std::string location() const {
    if (depth_ == 0 || names_.empty()) return "the header";
    return in_metadata_ ? "__metadata__" : "tensor '" + header_.entries.back().name + "'";
  }

  TensorHeader& header_;
  const std::string& source_name_;
  int depth_ = 0;
  bool list_ = false;
  bool in_metadata_ = false;
  std::string field_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
  std::vector<int64_t> numbers_;
};

}  // namespace

TensorHeader parse_tensor_header(std::string_view json, const std::string& source_name) {
  if (!json.starts_with('{')) throw UserError(source_name + ": the header does not start with '{'");
  TensorHeader header;
  HeaderSax sax(header, source_name);
  nlohmann::json::sax_parse(json.begin(), json.end(), &sax);
  return header;
}

std::string_view safetensors_dtype_name(DType dtype) {
  return kNames[static_cast<size_t>(dtype)].second;
}

}  // namespace fluid
