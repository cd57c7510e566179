#include "executor/fluidrun/flag_names.h"

#include <cctype>
#include <string_view>
#include <utility>

namespace fluid {
namespace {

constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
    {"set CheckpointingOptions::resume", "give --resume"},
    {"DistributedOptions::zero", "--zero"},
    {"set LoadOptions::layout to", "give --params-layout"},
    {"LoadOptions::maps", "--params-map"},
    {"set Plateau::mode to", "give --schedule-mode"},
    {"PrecisionOptions::dtype", "--dtype"},
    {"record minimize() of a loss", "give --optimizer NAME and --minimize OUTPUT"}};

bool is_letter_at(std::string_view text, size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

/// Whether position `at` is within quotes, as names and paths of the user are. An apostrophe within
/// a word opens and closes no quotation.
bool is_quoted(std::string_view message, size_t at) {
  bool quoted = false;
  for (size_t i = 0; i < at; ++i) {
    if (message[i] != '\'') continue;
    quoted = quoted ? is_letter_at(message, i + 1) : i == 0 || !is_letter_at(message, i - 1);
  }
  return quoted;
}

}  // namespace

std::string with_flag_names(std::string message) {
  for (const auto& [option, flag] : kFlags) {
    for (size_t at = 0; (at = message.find(option, at)) != std::string::npos;) {
      const bool is_of_user = is_quoted(message, at);
      if (!is_of_user) message.replace(at, option.size(), flag);
      at += is_of_user ? option.size() : flag.size();
    }
  }
  return message;
}

}  // namespace fluid
