#include "executor/device/description_reader.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/error.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
bool holds(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.is_boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.is_string();
  } else if constexpr (std::is_floating_point_v<T>) {
    return value.is_number() && value.get<T>() > 0;
  } else if constexpr (std::is_same_v<T, DescriptionReader::Pairs>) {
    return value.is_object() && std::ranges::all_of(value, [](const Json& pair) {
             return pair.is_array() && pair.size() == 2 &&
                    std::ranges::all_of(pair, &holds<double>);
           });
  } else {
    return value.is_number_integer() && value.get<int64_t>() > 0 &&
           value.get<int64_t>() <= std::numeric_limits<T>::max();
  }
}

}  // namespace

struct DescriptionReader::Impl {
  template <class T>
  void read(const char* name, T& value) {
    names.emplace_back(name);
    const auto entry = object.find(name);
    if (entry == object.end()) {
      throw UserError(file + ": the " + object_name + "'s entry '" + name + "' is missing");
    }
    if (!holds<T>(*entry)) {
      throw UserError(file + ": the " + object_name + "'s entry '" + name + "' cannot be " +
                      entry->dump());
    }
    value = entry->template get<T>();
  }

  std::string file, object_name;
  Json object;
  std::vector<std::string> names;  ///< names of the entries read so far
};

DescriptionReader::DescriptionReader(const std::string& text, std::string file,
                                     std::string object_name, const std::string& pointer,
                                     const std::string& missing_message)
    : impl_(new Impl{std::move(file), std::move(object_name), {}, {}}) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    throw UserError(impl_->file + ": not a JSON object that describes a target");
  }
  const Json::json_pointer at(pointer);
  if (!json.contains(at) || !json.at(at).is_object()) {
    throw UserError(impl_->file + ": " + missing_message);
  }
  impl_->object = json.at(at);
}
DescriptionReader::~DescriptionReader() = default;

bool DescriptionReader::has(const char* name) const { return impl_->object.contains(name); }
void DescriptionReader::read(const char* name, bool& value) { impl_->read(name, value); }
void DescriptionReader::read(const char* name, double& value) { impl_->read(name, value); }
void DescriptionReader::read(const char* name, std::string& value) { impl_->read(name, value); }
void DescriptionReader::read(const char* name, int& value) { impl_->read(name, value); }
void DescriptionReader::read(const char* name, int64_t& value) { impl_->read(name, value); }

void DescriptionReader::read(const char* name, Pairs& value) { impl_->read(name, value); }

void DescriptionReader::reject(const char* name, const std::string& why) const {
  throw UserError(impl_->file + ": the " + impl_->object_name + "'s entry '" + name +
                  "' is incomplete: " + why);
}

void DescriptionReader::reject_unknown_entries(std::vector<std::string> known) const {
  known.insert(known.end(), impl_->names.begin(), impl_->names.end());
  for (const auto& entry : impl_->object.items()) {
    if (std::ranges::find(known, entry.key()) != known.end()) continue;
    throw UserError(impl_->file + ": a " + impl_->object_name + " has no entry '" + entry.key() +
                    "'" + did_you_mean(entry.key(), known));
  }
}

}  // namespace fluid
