#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"
#include "ir/number.h"

/// Command line options shared by the examples.
struct ExampleOptions {
  std::string save;    ///< file to save the program to; empty: do not save
  std::string data;    ///< data SPEC (see open_data()) to train on; empty: no training
  int64_t epochs = 0;  ///< training epochs; 0: the default of the example
  int64_t steps = 0;   ///< maximum number of training steps; 0: no limit
  /// Flag -> value, for the flags that are specific to an example.
  std::map<std::string, std::string, std::less<>> example_flags;

  /// Returns the value of a flag in `example_flags`, or `fallback` if the flag is not given.
  std::string flag_or(std::string_view flag, std::string_view fallback) const {
    const auto found = example_flags.find(flag);
    return found == example_flags.end() ? std::string(fallback) : found->second;
  }
  int64_t epochs_or(int64_t otherwise) const { return epochs > 0 ? epochs : otherwise; }
};

/// Parses `text`, the value of `flag`, as a positive number. Throws UserError naming `flag` if
/// `text` is anything else.
template <class T = int64_t>
T parse_positive(std::string_view flag, std::string_view text) {
  const T number = fluid::parse_number<T>(text).value_or(0);
  if (!(number > 0)) {
    throw fluid::UserError(std::string(flag) + " " + std::string(text) + ": must be a positive " +
                           (std::is_integral_v<T> ? "integer" : "number"));
  }
  return number;
}

/// Parses the command line, calls `body` and prints errors. Returns the exit code. `example_flags`
/// lists the flags that are specific to the example, such as "--prompt TEXT".
inline int run_example(int argc, char** argv,
                       const std::function<void(const ExampleOptions&)>& body,
                       const std::vector<std::string>& example_flags = {}) {
  try {
    ExampleOptions options;
    std::string usage =
        "usage: " + std::string(argv[0]) +
        " --save FILE.fluid | --data SPEC [--save FILE.fluid] [--epochs N] [--steps N]";
    for (const std::string& flag : example_flags) usage += " [" + flag + "]";
    const auto is_example_flag = [&](std::string_view flag) {
      return std::ranges::any_of(example_flags, [&](const std::string& usage_text) {
        return usage_text.substr(0, usage_text.find(' ')) == flag;
      });
    };
    for (int i = 1; i < argc; i += 2) {
      const std::string_view flag = argv[i];
      if (i + 1 == argc) throw fluid::UserError(usage);
      if (flag == "--save") {
        options.save = argv[i + 1];
      } else if (flag == "--data") {
        options.data = argv[i + 1];
      } else if (flag == "--epochs") {
        options.epochs = parse_positive(flag, argv[i + 1]);
      } else if (flag == "--steps") {
        options.steps = parse_positive(flag, argv[i + 1]);
      } else if (is_example_flag(flag)) {
        options.example_flags.emplace(flag, argv[i + 1]);
      } else {
        throw fluid::UserError("no option '" + std::string(flag) + "'");
      }
    }
    if (options.save.empty() && options.data.empty() && options.example_flags.empty()) {
      throw fluid::UserError(usage);
    }
    body(options);
    return 0;
  } catch (const fluid::UserError& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
