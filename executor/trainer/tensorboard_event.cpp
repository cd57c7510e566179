#include "executor/trainer/tensorboard_event.h"

#include <bit>
#include <string_view>
#include <vector>

#include "frontend/images/encode_png.h"

namespace fluid {
namespace {

/// Encodes the fields of a protocol buffer.
class MessageEncoder {
 public:
  void add_integer(int field, int64_t value) {
    add_key(field, 0);
    add_varint(static_cast<uint64_t>(value));
  }
  void add_double(int field, double value) {
    add_key(field, 1);
    add_fixed(std::bit_cast<uint64_t>(value));
  }
  void add_bytes(int field, std::string_view value) {
    add_key(field, 2);
    add_varint(value.size());
    bytes_ += value;
  }
  void add_doubles(int field, const std::vector<double>& values) {
    MessageEncoder packed;
    for (const double value : values) packed.add_fixed(std::bit_cast<uint64_t>(value));
    add_bytes(field, packed.bytes_);
  }
  void add_float(int field, float value) {
    add_key(field, 5);
    add_fixed(std::bit_cast<uint32_t>(value));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void add_key(int field, int wire_type) {
    add_varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
  }
  void add_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <class T>
  void add_fixed(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

  std::string bytes_;
};

// Field numbers of TensorFlow's protocol buffer messages: Event and its nested messages.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SessionLogField { kStatus = 1 };
enum SummaryField { kValue = 1 };
enum ValueField {
  kTag = 1,
  kSimpleValue = 2,
  kImage = 4,
  kHistogram = 5,
  kTensor = 8,
  kMetadata = 9
};
enum ImageField { kHeight = 1, kWidth = 2, kColorSpace = 3, kEncodedImage = 4 };
enum HistogramField { kMin = 1, kMax, kNum, kSum, kSumSquares, kBucketLimits, kBuckets };
enum TensorField { kDType = 1, kShape = 2, kStrings = 8 };
enum ShapeField { kDimension = 2 };
enum DimensionField { kSize = 1 };
enum MetadataField { kPlugin = 1, kDataClass = 4 };
enum PluginField { kPluginName = 1 };
constexpr int kSessionStart = 1;  // SessionLog.START
constexpr int kString = 7;        // DT_STRING
constexpr int kTensorClass = 2;   // DATA_CLASS_TENSOR

MessageEncoder new_event(double wall_time, int64_t step) {
  MessageEncoder event;
  event.add_double(kWallTime, wall_time);
  event.add_integer(kStep, step);
  return event;
}

/// Returns an event whose summary holds one value.
std::string summary_event(double wall_time, int64_t step, const MessageEncoder& value) {
  MessageEncoder summary, event = new_event(wall_time, step);
  summary.add_bytes(kValue, value.bytes());
  event.add_bytes(kSummary, summary.bytes());
  return event.bytes();
}

}  // namespace

std::string tensorboard_version_event(double wall_time) {
  MessageEncoder event = new_event(wall_time, 0);
  event.add_bytes(kFileVersion, "brain.Event:2");
  return event.bytes();
}

std::string tensorboard_start_event(double wall_time, int64_t first_step) {
  MessageEncoder log;
  log.add_integer(kStatus, kSessionStart);
  MessageEncoder event = new_event(wall_time, first_step);
  event.add_bytes(kSessionLog, log.bytes());
  return event.bytes();
}

std::string tensorboard_summary_event(double wall_time, int64_t step, const NamedScalars& scalars) {
  MessageEncoder summary;
  for (const auto& [tag, scalar] : scalars) {
    MessageEncoder value;
    value.add_bytes(kTag, tag);
    value.add_float(kSimpleValue, static_cast<float>(scalar));
    summary.add_bytes(kValue, value.bytes());
  }
  MessageEncoder event = new_event(wall_time, step);
  event.add_bytes(kSummary, summary.bytes());
  return event.bytes();
}

std::string tensorboard_histogram_event(double wall_time, int64_t step, const std::string& tag,
                                        const Histogram& histogram) {
  MessageEncoder histo;
  histo.add_double(kMin, histogram.min);
  histo.add_double(kMax, histogram.max);
  histo.add_double(kNum, histogram.num);
  histo.add_double(kSum, histogram.sum);
  histo.add_double(kSumSquares, histogram.sum_squares);
  histo.add_doubles(kBucketLimits, histogram.right_edges);
  histo.add_doubles(kBuckets, histogram.counts);
  MessageEncoder value;
  value.add_bytes(kTag, tag);
  value.add_bytes(kHistogram, histo.bytes());
  return summary_event(wall_time, step, value);
}

std::string tensorboard_image_event(double wall_time, int64_t step, const std::string& tag,
                                    const Image& image) {
  MessageEncoder picture;
  picture.add_integer(kHeight, image.height);
  picture.add_integer(kWidth, image.width);
  picture.add_integer(kColorSpace, image.channels);
  picture.add_bytes(kEncodedImage, encode_png(image));
  MessageEncoder value;
  value.add_bytes(kTag, tag);
  value.add_bytes(kImage, picture.bytes());
  return summary_event(wall_time, step, value);
}

std::string tensorboard_text_event(double wall_time, int64_t step, const std::string& tag,
                                   const std::string& text) {
  MessageEncoder dimension, shape, tensor, plugin, metadata, value;
  dimension.add_integer(kSize, 1);
  shape.add_bytes(kDimension, dimension.bytes());
  tensor.add_integer(kDType, kString);
  tensor.add_bytes(kShape, shape.bytes());
  tensor.add_bytes(kStrings, text);
  plugin.add_bytes(kPluginName, "text");
  metadata.add_bytes(kPlugin, plugin.bytes());
  metadata.add_integer(kDataClass, kTensorClass);
  value.add_bytes(kTag, tag);
  value.add_bytes(kTensor, tensor.bytes());
  value.add_bytes(kMetadata, metadata.bytes());
  return summary_event(wall_time, step, value);
}

}  // namespace fluid
