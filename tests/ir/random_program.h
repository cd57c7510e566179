#pragma once

#include <cstdint>
#include <memory>

#include "ir/graph.h"

namespace fluid {

/// A program with about `ops` ops that verify() accepts: every kind of attribute, dtype, role and
/// layout, odd names and strings, nested graphs. The ops' names mean nothing. The same arguments
/// give the same program.
std::unique_ptr<ir::Program> random_program(uint64_t seed, int ops);

}  // namespace fluid
