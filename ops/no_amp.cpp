#include "ops/no_amp.h"

#include <utility>

namespace fluid {
namespace {

thread_local int guards = 0;

}  // namespace

NoAmp::NoAmp() { ++guards; }
NoAmp::~NoAmp() { --guards; }
bool NoAmp::active() { return guards > 0; }

NoAmp::Suspend::Suspend() : guards_(std::exchange(guards, 0)) {}
NoAmp::Suspend::~Suspend() { guards = guards_; }

}  // namespace fluid
