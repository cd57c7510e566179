// A library for LD_PRELOAD: appends the text of each fluid error that the process throws to the
// file $FLUID_THROWN_MESSAGES, one line each. messages.sh looks for the messages of the sources
// there.

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>

namespace {

/// Returns whether `text` was probably logged by this process. Lock-free, because the process may
/// fork while another thread logs.
bool was_logged(std::string_view text) {
  static std::array<std::atomic<size_t>, 4096> logged = {};
  const size_t hash = std::hash<std::string_view>()(text) | 1;
  return logged[hash % logged.size()].exchange(hash) == hash;
}

void log(std::string text) {
  const char* path = std::getenv("FLUID_THROWN_MESSAGES");
  if (path == nullptr || was_logged(text)) return;
  std::replace(text.begin(), text.end(), '\n', ' ');
  text += '\n';
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, text.data(), text.size());
  close(file);
}

}  // namespace

/// Replaces the function that `throw` calls: logs the message, then calls the C++ runtime's own.
extern "C" [[noreturn]] void __cxa_throw(void* object, std::type_info* type,
                                         void (*destroy)(void*)) {
  const int errno_before = errno;
  void* base = object;
  if (std::string_view(type->name()).starts_with("N5fluid") &&
      typeid(std::runtime_error).__do_catch(type, &base, 1)) {
    log(static_cast<std::runtime_error*>(base)->what());
  }
  errno = errno_before;
  using Throw = void (*)(void*, std::type_info*, void (*)(void*));
  static const auto next = reinterpret_cast<Throw>(dlsym(RTLD_NEXT, "__cxa_throw"));
  next(object, type, destroy);
  abort();
}
