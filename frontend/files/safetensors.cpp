#include "frontend/files/safetensors.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "frontend/files/safetensors_header.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr const char* kChecksum = "fluid.checksum";
static_assert(std::endian::native == std::endian::little, "the file's bytes are the memory's");

/// Returns the size in bytes of the tensor; -1 if the size overflows int64_t.
int64_t bytes_of(const TensorEntry& entry) {
  int64_t n = size_of(entry.dtype);
  for (int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(n, extent, &n)) return -1;
  }
  return n;
}

void check_contiguous(const std::vector<TensorEntry>& entries, int64_t size,
                      const std::string& source_name) {
  int64_t at = 0;
  for (const TensorEntry& e : entries) {
    const std::string tensor = source_name + ": tensor '" + e.name + "' ";
    if (e.begin > e.end) throw UserError(tensor + "ends before it begins");
    if (e.begin > at) throw UserError(tensor + "leaves a hole before it");
    if (e.begin < at) throw UserError(tensor + "overlaps the one before");
    if (e.end > size) throw UserError(tensor + "reaches past the end of the file");
    if (bytes_of(e) != e.end - e.begin) {
      throw UserError(tensor + "has " + std::to_string(e.end - e.begin) +
                      " bytes, which its shape does not take");
    }
    at = e.end;
  }
  if (at != size) {
    throw UserError(source_name + ": " + std::to_string(size - at) + " bytes belong to no tensor");
  }
}

void check_bools(const Tensor& tensor, const std::string& name, const std::string& source_name) {
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  if (std::any_of(bytes, bytes + tensor.bytes(), [](uint8_t b) { return b > 1; })) {
    throw UserError(source_name + ": tensor '" + name + "' holds a bool that is neither 0 nor 1");
  }
}

/// Incremental XXH3 hash. str() returns the hash in decimal.
class Checksum {
 public:
  Checksum() { XXH3_64bits_reset(&state_); }
  void add(const void* bytes, size_t size) { XXH3_64bits_update(&state_, bytes, size); }
  std::string str() const { return std::to_string(XXH3_64bits_digest(&state_)); }

 private:
  XXH3_state_t state_;
};

/// Removes Fluid's checksum from `metadata`. Returns false if there is none. Throws UserError if
/// the checksum differs from the hash of the bytes from offset `begin` to the end.
bool verify_checksum(std::map<std::string, std::string>& metadata, const ByteSource& bytes,
                     int64_t begin, const std::string& source_name) {
  const auto recorded = metadata.extract(kChecksum);
  if (recorded.empty()) return false;
  if (recorded.mapped() != std::to_string(bytes.hash(begin))) {
    throw UserError(source_name + ": damaged: its checksum differs");
  }
  return true;
}

}  // namespace

const Tensor* TensorFile::find(std::string_view name) const {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

TensorHeader parse_safetensors_header(const ByteSource& bytes, const std::string& source_name) {
  const auto room = static_cast<uint64_t>(bytes.size());
  uint64_t length = 0;
  if (room < kLengthBytes) throw UserError(source_name + ": too short for a safetensors file");
  bytes.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes)
    throw UserError(source_name + ": not a safetensors file (header over 100 MB)");
  if (length > room - kLengthBytes) throw UserError(source_name + ": the header is cut off");
  std::string text(length, ' ');
  bytes.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  TensorHeader header = parse_tensor_header(text, source_name);

  const auto data = static_cast<int64_t>(kLengthBytes + length);
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const TensorEntry& a, const TensorEntry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  check_contiguous(header.entries, bytes.size() - data, source_name);
  for (TensorEntry& e : header.entries) {
    e.begin += data;
    e.end += data;
  }
  return header;
}

TensorFile parse_safetensors(const ByteSource& bytes, const std::string& source_name) {
  TensorHeader header = parse_safetensors_header(bytes, source_name);
  const int64_t data = header.entries.empty() ? bytes.size() : header.entries.front().begin;
  TensorFile file;
  file.written_by_fluid = verify_checksum(header.metadata, bytes, data, source_name);
  file.metadata = std::move(header.metadata);
  for (TensorEntry& e : header.entries) {
    Tensor tensor = bytes.read_tensor(e.dtype, e.shape, e.begin);
    if (e.dtype == DType::boolean) check_bools(tensor, e.name, source_name);
    file.tensors.emplace_back(std::move(e.name), std::move(tensor));
  }
  return file;
}

TensorFile parse_safetensors(std::string_view bytes, const std::string& source_name) {
  return parse_safetensors(MemoryBytes(bytes), source_name);
}

TensorFile read_safetensors(const std::string& path) {
  return parse_safetensors(FileBytes(path), path);
}

void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       std::map<std::string, std::string> metadata) {
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const int64_t wide = size_of(a->second.dtype()), narrow = size_of(b->second.dtype());
    return wide != narrow ? wide > narrow : a->first < b->first;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  Checksum checksum;
  for (const auto* entry : order) {
    checksum.add(entry->second.data(), static_cast<size_t>(entry->second.bytes()));
  }
  metadata[kChecksum] = checksum.str();
  header["__metadata__"] = metadata;
  int64_t at = 0;
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    if (name == "__metadata__" || header.contains(name)) {
      throw UserError(path + ": two tensors cannot both be named '" + name + "'");
    }
    header[name] = {{"dtype", safetensors_dtype_name(tensor.dtype())},
                    {"shape", tensor.shape()},
                    {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    throw UserError(path + ": a tensor's name or a metadata entry is not UTF-8");
  }
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  if (text.size() > kMaxHeaderBytes) {
    throw UserError(path +
                    ": the names of the tensors and the metadata, such as categories, take " +
                    std::to_string(text.size()) + " bytes; the format allows 100000000");
  }
  const uint64_t length = text.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const auto* entry : order) {
    const Tensor& tensor = entry->second;
    file.write({static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
  }
  file.commit();
}

}  // namespace fluid
