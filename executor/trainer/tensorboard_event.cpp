#include "executor/trainer/tensorboard_event.h"

#include <bit>
#include <string_view>

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

// Field numbers of the messages.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SessionLogField { kStatus = 1 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
constexpr int kSessionStart = 1;  // SessionLog.START

MessageEncoder new_event(double seconds, int64_t step) {
  MessageEncoder event;
  event.add_double(kWallTime, seconds);
  event.add_integer(kStep, step);
  return event;
}

}  // namespace

std::string tensorboard_version_event(double seconds) {
  MessageEncoder event = new_event(seconds, 0);
  event.add_bytes(kFileVersion, "brain.Event:2");
  return event.bytes();
}

std::string tensorboard_start_event(double seconds, int64_t first_step) {
  MessageEncoder log;
  log.add_integer(kStatus, kSessionStart);
  MessageEncoder event = new_event(seconds, first_step);
  event.add_bytes(kSessionLog, log.bytes());
  return event.bytes();
}

std::string tensorboard_summary_event(double seconds, int64_t step, const NamedScalars& scalars) {
  MessageEncoder summary;
  for (const auto& [tag, scalar] : scalars) {
    MessageEncoder value;
    value.add_bytes(kTag, tag);
    value.add_float(kSimpleValue, static_cast<float>(scalar));
    summary.add_bytes(kValue, value.bytes());
  }
  MessageEncoder event = new_event(seconds, step);
  event.add_bytes(kSummary, summary.bytes());
  return event.bytes();
}

}  // namespace fluid
