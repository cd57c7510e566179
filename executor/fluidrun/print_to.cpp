#include "executor/fluidrun/print_to.h"

#include <cerrno>
#include <cstdio>

namespace fluid {

namespace {

int first_error = 0;

}  // namespace

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 && first_error == 0) first_error = errno;
}

int output_error() {
  flush_output();
  if (first_error == 0 && std::ferror(stdout) != 0) return EIO;
  return first_error;
}

}  // namespace fluid
