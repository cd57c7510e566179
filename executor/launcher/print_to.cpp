#include "executor/launcher/print_to.h"

#include <cerrno>
#include <cstdio>

namespace fluid {

namespace {

int first_error = 0;

}  // namespace

void flush_stdout() {
  errno = 0;
  if (std::fflush(stdout) != 0 && first_error == 0) first_error = errno;
}

int stdout_error() {
  flush_stdout();
  if (first_error == 0 && std::ferror(stdout) != 0) return EIO;
  return first_error;
}

}  // namespace fluid
