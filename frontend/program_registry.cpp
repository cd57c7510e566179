#include "frontend/program_registry.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "ir/error.h"

namespace fluid {
namespace {

/// Returns the id of the calling thread. Unlike std::thread::id, ids are never reused.
uint64_t this_thread_id() {
  static std::atomic<uint64_t> next_id = 0;
  thread_local const uint64_t id = next_id++;
  return id;
}

struct Registration {
  ir::Program* program;
  uint64_t thread;  ///< this_thread_id() of the thread that registered the program
};
/// The registered programs of all threads. A mutex protects the list, because a thread may destroy
/// a program that another thread created.
struct Registry {
  std::mutex mutex;
  std::vector<Registration> programs;
};
Registry& registry() {
  static auto* const all = new Registry;  // never deleted: destructors of static Programs use it
  return *all;
}

thread_local std::vector<ir::Program*> guarded_programs;

}  // namespace

void UnregisterProgram::operator()(ir::Program* program) const {
  {
    const std::lock_guard lock(registry().mutex);
    std::erase_if(registry().programs, [&](const Registration& l) { return l.program == program; });
  }
  delete program;
}

RegisteredProgram register_program(std::unique_ptr<ir::Program> program) {
  const std::lock_guard lock(registry().mutex);
  registry().programs.push_back({program.get(), this_thread_id()});
  return RegisteredProgram(program.release());
}

CurrentProgramGuard::CurrentProgramGuard(ir::Program& program) {
  guarded_programs.push_back(&program);
}
CurrentProgramGuard::~CurrentProgramGuard() { guarded_programs.pop_back(); }

ir::Program& current_program(const std::string& parameter_name, const Loc& loc) {
  if (!guarded_programs.empty()) return *guarded_programs.back();
  const std::lock_guard lock(registry().mutex);
  std::vector<ir::Program*> own;
  for (const Registration& l : registry().programs) {
    if (l.thread == this_thread_id()) own.push_back(l.program);
  }
  if (own.size() == 1) return *own.front();
  if (own.empty()) {
    throw UserError(loc, "parameter '" + parameter_name +
                             "': this thread has made no program that is alive; call the "
                             "program's parameter()");
  }
  throw UserError(loc, "parameter '" + parameter_name + "': there are " +
                           std::to_string(own.size()) + " programs, '" + own[0]->name + "' and '" +
                           own[1]->name +
                           "' among them; call the program's parameter(), or open a Scope");
}

}  // namespace fluid
