#include "ops/no_amp.h"

#include <utility>

namespace fluid {
namespace {

// Number of NoAmp guards of the thread plus kOutside. The initial value is nonzero, so that the
// variable is in .tdata. If .tbss is the only TLS section of a program, the RELRO segment that mold
// 1.10 emits may begin in an unmapped page. The program then does not start.
constexpr int kOutside = 1;
thread_local int guards = kOutside;

}  // namespace

NoAmp::NoAmp() { ++guards; }
NoAmp::~NoAmp() { --guards; }
bool NoAmp::active() { return guards > kOutside; }

NoAmp::Suspend::Suspend() : guards_(std::exchange(guards, kOutside)) {}
NoAmp::Suspend::~Suspend() { guards = guards_; }

}  // namespace fluid
