#include "executor/fluidrun/flag_names.h"

#include <string_view>
#include <utility>

namespace fluid {
namespace {

constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
    {"CheckpointingOptions::resume", "--resume"},
    {"DistributedOptions::zero", "--zero"},
    {"LoadOptions::layout", "--params-layout"},
    {"LoadOptions::maps", "--params-map"},
    {"Plateau::mode", "--schedule-mode"},
    {"PrecisionOptions::dtype", "--dtype"},
    {"record minimize() of a loss", "give --optimizer NAME and --minimize OUTPUT"}};

}  // namespace

std::string with_flag_names(std::string message) {
  for (const auto& [option, flag] : kFlags) {
    for (size_t at = 0; (at = message.find(option, at)) != std::string::npos; at += flag.size()) {
      message.replace(at, option.size(), flag);
    }
  }
  return message;
}

}  // namespace fluid
