#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ir/error.h"
#include "ir/number.h"

/// Command line options shared by the examples.
struct ExampleOptions {
  std::string save;    ///< file to save the program to; empty: none
  std::string data;    ///< data SPEC (see open_data()) to train on; empty: no training
  int64_t epochs = 0;  ///< training epochs; 0: the default of the example
  int64_t steps = 0;   ///< maximum number of training steps; 0: no limit

  int64_t epochs_or(int64_t otherwise) const { return epochs > 0 ? epochs : otherwise; }
};

/// Parses a positive integer. Throws UserError naming `flag` for anything else.
inline int64_t parse_positive(std::string_view flag, std::string_view text) {
  const int64_t count = fluid::parse_number<int64_t>(text).value_or(0);
  if (count <= 0) {
    throw fluid::UserError(std::string(flag) + " " + std::string(text) +
                           ": must be a positive integer");
  }
  return count;
}

/// Parses the command line, calls `body` and prints errors. Returns the exit code.
inline int run_example(int argc, char** argv,
                       const std::function<void(const ExampleOptions&)>& body) {
  try {
    ExampleOptions options;
    const std::string usage =
        "usage: " + std::string(argv[0]) +
        " --save FILE.fluid | --data SPEC [--save FILE.fluid] [--epochs N] [--steps N]";
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
      } else {
        throw fluid::UserError("no option '" + std::string(flag) + "'");
      }
    }
    if (options.save.empty() && options.data.empty()) throw fluid::UserError(usage);
    body(options);
    return 0;
  } catch (const fluid::UserError& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
