#include "frontend/living_programs.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "ir/error.h"

namespace fluid {
namespace {

/// A number for each thread, never used again, unlike std::thread::id.
uint64_t this_thread() {
  static std::atomic<uint64_t> threads = 0;
  thread_local const uint64_t number = threads++;
  return number;
}

struct Listed {
  ir::Program* program;
  uint64_t thread;
};
/// A program may die in another thread than made it.
struct List {
  std::mutex mutex;
  std::vector<Listed> programs;
};
List& list() {
  static auto* const all = new List;  // outlives the programs in static variables
  return *all;
}

thread_local std::vector<ir::Program*> guarded;

}  // namespace

void Unlist::operator()(ir::Program* program) const {
  {
    const std::lock_guard lock(list().mutex);
    std::erase_if(list().programs, [&](const Listed& l) { return l.program == program; });
  }
  delete program;
}

LivingProgram list_program(std::unique_ptr<ir::Program> program) {
  const std::lock_guard lock(list().mutex);
  list().programs.push_back({program.get(), this_thread()});
  return LivingProgram(program.release());
}

RecordedProgram::RecordedProgram(ir::Program& program) { guarded.push_back(&program); }
RecordedProgram::~RecordedProgram() { guarded.pop_back(); }

ir::Program& recorded_program(const std::string& name, const Loc& loc) {
  if (!guarded.empty()) return *guarded.back();
  const std::lock_guard lock(list().mutex);
  std::vector<ir::Program*> own;
  for (const Listed& l : list().programs) {
    if (l.thread == this_thread()) own.push_back(l.program);
  }
  if (own.size() == 1) return *own.front();
  if (own.empty()) {
    throw UserError(loc, "parameter '" + name +
                             "': this thread has made no program that is alive; call the "
                             "program's parameter()");
  }
  throw UserError(loc, "parameter '" + name + "': there are " + std::to_string(own.size()) +
                           " programs, '" + own[0]->name + "' and '" + own[1]->name +
                           "' among them; call the program's parameter(), or open a Scope");
}

}  // namespace fluid
