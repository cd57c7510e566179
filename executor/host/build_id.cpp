#include "executor/host/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace fluid {
namespace {

constexpr size_t aligned_to_word(size_t bytes) { return (bytes + 3) / 4 * 4; }

/// Returns the content of the build ID among the notes of a PT_NOTE segment; empty if there is
/// none.
std::span<const unsigned char> build_id_in(std::span<const std::byte> notes) {
  using namespace std::string_view_literals;
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(notes.data());
    notes = notes.subspan(sizeof note);
    const size_t name = aligned_to_word(note.n_namesz), content = aligned_to_word(note.n_descsz);
    if (name + content > notes.size()) break;
    const std::string_view owner(reinterpret_cast<const char*>(notes.data()), note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && owner == "GNU\0"sv)
      return {reinterpret_cast<const unsigned char*>(notes.data()) + name, note.n_descsz};
    notes = notes.subspan(name + content);
  }
  return {};
}

/// Whether a loaded program or library contains the address of this function.
bool contains_this_code(const dl_phdr_info& object) {
  const auto here = reinterpret_cast<uintptr_t>(&contains_this_code);
  for (const ElfW(Phdr) & segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && here >= begin && here < begin + segment.p_memsz) return true;
  }
  return false;
}

/// Callback of dl_iterate_phdr(). Stores the ID in `result` and ends the iteration at the object
/// that contains this code.
int store_build_id(dl_phdr_info* object, size_t, void* result) {
  if (!contains_this_code(*object)) return 0;
  for (const ElfW(Phdr) & segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr);
    for (const unsigned char byte : build_id_in({notes, segment.p_memsz}))
      *static_cast<std::string*>(result) += fmt::format("{:02x}", byte);
  }
  return 1;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(store_build_id, &found);
    return found;
  }();
  return id;
}

}  // namespace fluid
