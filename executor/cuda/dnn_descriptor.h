#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fluid::cuda {

/// cuDNN's attribute type (cudnnBackendAttributeType_t) for a C++ type.
constexpr cudnnBackendAttributeType_t dnn_type(int64_t) { return CUDNN_TYPE_INT64; }
constexpr cudnnBackendAttributeType_t dnn_type(float) { return CUDNN_TYPE_FLOAT; }
constexpr cudnnBackendAttributeType_t dnn_type(char) { return CUDNN_TYPE_CHAR; }
constexpr cudnnBackendAttributeType_t dnn_type(bool) { return CUDNN_TYPE_BOOLEAN; }
constexpr cudnnBackendAttributeType_t dnn_type(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
constexpr cudnnBackendAttributeType_t dnn_type(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
constexpr cudnnBackendAttributeType_t dnn_type(cudnnConvolutionMode_t) {
  return CUDNN_TYPE_CONVOLUTION_MODE;
}
constexpr cudnnBackendAttributeType_t dnn_type(cudnnPointwiseMode_t) {
  return CUDNN_TYPE_POINTWISE_MODE;
}
constexpr cudnnBackendAttributeType_t dnn_type(cudnnBackendHeurMode_t) {
  return CUDNN_TYPE_HEUR_MODE;
}
constexpr cudnnBackendAttributeType_t dnn_type(cudnnBackendNumericalNote_t) {
  return CUDNN_TYPE_NUMERICAL_NOTE;
}
constexpr cudnnBackendAttributeType_t dnn_type(cudnnBackendBehaviorNote_t) {
  return CUDNN_TYPE_BEHAVIOR_NOTE;
}
constexpr cudnnBackendAttributeType_t dnn_type(cudnnBackendKnobType_t) {
  return CUDNN_TYPE_KNOB_TYPE;
}
constexpr cudnnBackendAttributeType_t dnn_type(cudnnBackendDescriptor_t) {
  return CUDNN_TYPE_BACKEND_DESCRIPTOR;
}

/// Whether cuDNN rejected a call as invalid or unsupported. Such a call would always fail again.
/// Other errors may be temporary.
inline bool is_rejection(cudnnStatus_t status) {
  const auto category = CUDNN_STATUS_CATEGORY(status);
  return category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_NOT_SUPPORTED;
}

/// Owns a cuDNN backend descriptor. The caller sets its attributes, then calls finalize(). After
/// the first error, later calls of set() and finalize() do nothing. A descriptor that was set as an
/// attribute value may be destroyed before this descriptor.
class DnnDescriptor {
 public:
  explicit DnnDescriptor(cudnnBackendDescriptorType_t type) {
    status_ = cudnnBackendCreateDescriptor(type, &descriptor_);
  }
  ~DnnDescriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  DnnDescriptor(DnnDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), status_(other.status_) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(status_, other.status_);
    return *this;
  }

  cudnnStatus_t status() const { return status_; }
  bool ok() const { return status_ == CUDNN_STATUS_SUCCESS; }
  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  DnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const T> values,
                     cudnnBackendAttributeType_t type = dnn_type(T{})) {
    if (ok()) {
      status_ = cudnnBackendSetAttribute(descriptor_, name, type,
                                         static_cast<int64_t>(values.size()), values.data());
    }
    return *this;
  }
  /// Sets an attribute whose values are device addresses.
  DnnDescriptor& set_addresses(cudnnBackendAttributeName_t name, std::span<void* const> addresses) {
    return set(name, addresses, CUDNN_TYPE_VOID_PTR);
  }
  template <class T>
  DnnDescriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span<const T>(&value, 1));
  }
  DnnDescriptor& set(cudnnBackendAttributeName_t name, const DnnDescriptor& other) {
    return propagate_error(other).set(name, other.descriptor_);
  }
  /// Copies the status of `other`, unless this descriptor already has an error.
  DnnDescriptor& propagate_error(const DnnDescriptor& other) {
    if (ok()) status_ = other.status_;
    return *this;
  }
  DnnDescriptor& finalize() {
    if (ok()) status_ = cudnnBackendFinalize(descriptor_);
    return *this;
  }

  /// Returns at most `max_count` values of an attribute; nullopt when the attribute cannot be read.
  template <class T>
  std::optional<std::vector<T>> values(cudnnBackendAttributeName_t name, int64_t max_count) const {
    std::vector<T> found(static_cast<size_t>(max_count));
    int64_t count = 0;
    if (!ok() || cudnnBackendGetAttribute(descriptor_, name, dnn_type(T{}), max_count, &count,
                                          found.data()) != CUDNN_STATUS_SUCCESS) {
      return std::nullopt;
    }
    found.resize(static_cast<size_t>(count < max_count ? count : max_count));
    return found;
  }
  /// Returns the first value of an attribute, or `fallback` when the attribute cannot be read.
  template <class T>
  T value_or(cudnnBackendAttributeName_t name, T fallback) const {
    const auto found = values<T>(name, 1);
    return !found || found->empty() ? fallback : found->front();
  }
  /// Returns at most `max_count` descriptors that are values of an attribute; empty when the
  /// attribute cannot be read.
  std::vector<DnnDescriptor> descriptors(cudnnBackendAttributeName_t name,
                                         cudnnBackendDescriptorType_t type,
                                         int64_t max_count) const;

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

}  // namespace fluid::cuda
