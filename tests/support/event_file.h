#pragma once

// Reads TensorBoard event files, without the code that writes them.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/atomic_file.h"

namespace fluid {

/// CRC-32C, bit by bit; "123456789" gives 0xe3069283 (RFC 3720 and the CRC catalogue).
inline uint32_t reference_crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  return crc ^ 0xffffffff;
}

template <class T>
T read_fixed(std::string_view bytes, size_t at) {
  T value = {};
  EXPECT_LE(at + sizeof(T), bytes.size());
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// The payloads of a TFRecord file, whose CRCs are checked.
inline std::vector<std::string> record_payloads(const std::string& file) {
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = reference_crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  std::vector<std::string> payloads;
  for (size_t at = 0; at < file.size();) {
    const auto length = read_fixed<uint64_t>(file, at);
    EXPECT_EQ(read_fixed<uint32_t>(file, at + 8), masked(std::string_view(file).substr(at, 8)));
    if (length > file.size() || at + 16 + length > file.size()) {
      ADD_FAILURE() << "a record of " << length << " bytes at " << at << " of " << file.size();
      break;
    }
    payloads.push_back(file.substr(at + 12, length));
    EXPECT_EQ(read_fixed<uint32_t>(file, at + 12 + length), masked(payloads.back()));
    at += 16 + length;
  }
  return payloads;
}

/// The fields of a protocol buffer: field number -> values. A varint becomes eight bytes; other
/// values keep their bytes.
inline std::map<uint64_t, std::vector<std::string>> message_fields(std::string_view bytes) {
  std::map<uint64_t, std::vector<std::string>> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < bytes.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < bytes.size()) {
    const uint64_t key = varint();
    std::string value(8, '\0');
    if ((key & 7) == 0) {
      const uint64_t number = varint();
      std::memcpy(value.data(), &number, 8);
    } else {
      const size_t length = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
      EXPECT_LE(at + length, bytes.size()) << "field " << (key >> 3);
      value = std::string(bytes.substr(at, length));
      at += length;
    }
    fields[key >> 3].push_back(value);
  }
  return fields;
}

/// The contents of an event file.
struct ReadEvents {
  std::string version;
  std::vector<int64_t> starts;                              ///< steps of SessionLog.START
  std::map<std::string, std::map<int64_t, float>> scalars;  ///< tag -> step -> value
  std::map<std::string, std::set<int64_t>> other_tags;      ///< tag -> steps, for other kinds
};

inline ReadEvents read_events(const std::string& path) {
  ReadEvents events;
  for (const std::string& payload : record_payloads(read_file(path))) {
    auto event = message_fields(payload);
    EXPECT_GT(read_fixed<double>(event[1].at(0), 0), 1.5e9) << "seconds since 1970";
    const auto step = read_fixed<int64_t>(event[2].at(0), 0);
    if (event.contains(3)) events.version = event[3].at(0);
    for (const std::string& log : event[7]) {
      if (read_fixed<int64_t>(message_fields(log)[1].at(0), 0) == 1) events.starts.push_back(step);
    }
    for (const std::string& summary : event[5]) {
      auto values = message_fields(summary);
      for (const std::string& bytes : values[1]) {
        auto value = message_fields(bytes);
        const std::string tag = value[1].at(0);
        if (value.contains(2)) {
          EXPECT_FALSE(events.scalars[tag].contains(step)) << tag << " of step " << step;
          events.scalars[tag][step] = read_fixed<float>(value[2].at(0), 0);
        } else {
          EXPECT_TRUE(events.other_tags[tag].insert(step).second) << tag << " of step " << step;
        }
      }
    }
  }
  return events;
}

/// The paths of the event files of a directory, in the order in which TensorBoard reads them.
inline std::vector<std::string> event_files(const std::string& directory) {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    paths.insert(entry.path().string());
  }
  return {paths.begin(), paths.end()};
}

}  // namespace fluid
