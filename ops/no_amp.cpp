#include "ops/no_amp.h"

#include <utility>

namespace fluid {
namespace {

// Number of guards plus kOutside. Not 0 outside of guards, so that the variable has a place in
// .tdata: mold 1.10 gives a program with a .tbss alone a RELRO segment that may begin in an
// unmapped page, and such a program does not start.
constexpr int kOutside = 1;
thread_local int guards = kOutside;

}  // namespace

NoAmp::NoAmp() { ++guards; }
NoAmp::~NoAmp() { --guards; }
bool NoAmp::active() { return guards > kOutside; }

NoAmp::Suspend::Suspend() : guards_(std::exchange(guards, kOutside)) {}
NoAmp::Suspend::~Suspend() { guards = guards_; }

}  // namespace fluid
