#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/tensor.h"

namespace fluid {

/// Name of the metadata entry of a parameter file that lists the LoRA adapters merged into its
/// weights: the results of adapter_id(), separated by spaces.
inline constexpr std::string_view kMergedAdaptersMetadata = "fluid.lora.merged";
/// Name of the metadata entry of a file of LoRA adapters that lists what they were trained on from:
/// the text of AdapterOrigins.
inline constexpr std::string_view kAdapterOriginsMetadata = "fluid.lora.origins";

/// Adapted weight -> ids that its adapter had when it was loaded or merged into a file, and of what
/// it was trained on from.
using AdapterOrigins = std::map<std::string, std::set<std::string>>;

/// The id of an adapter that adds 0, as one does before its training.
inline constexpr std::string_view kNoAdapter = "0";

/// Returns a hash of the factors and the scale of an adapter, as hexadecimal text, or kNoAdapter if
/// `b` is 0. Does not depend on the dtype of factors that f32 can represent.
std::string adapter_id(const Tensor& a, const Tensor& b, double scale);

/// Converts a set of adapter ids to the text of kMergedAdaptersMetadata and back.
std::string adapter_ids_text(const std::set<std::string>& ids);
std::set<std::string> parse_adapter_ids(const std::string& text);
/// Converts origins to text, "fc0.w=ID;fc0.w=ID;fc1.w=ID", and back.
std::string adapter_origins_text(const AdapterOrigins& origins);
AdapterOrigins parse_adapter_origins(const std::string& text);

}  // namespace fluid
