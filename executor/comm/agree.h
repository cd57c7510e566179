#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executor/comm/communicator.h"

namespace fluid {

/// Makes sure that all ranks give the same `hash` of what they must have alike, for example of the
/// "program" they run. All call it, like an operation of `all`. Throws the same UserError on every
/// rank, which names those that differ from rank 0, when some do.
void agree(Communicator& all, const World& world, const std::string& what, uint64_t hash);

/// The same of several values by their names: it also says in which the lowest rank that differs
/// does so.
void agree(Communicator& all, const World& world, const std::string& what,
           const std::map<std::string, std::string>& values);

/// What the lowest rank that has something to say says, to all: "rank 1: TEXT". "" when none has.
/// All call it, like an operation of `all`.
std::string first_said(Communicator& all, const World& world, const std::string& text);

/// What rank `root` has, to all. All call it, like an operation of `all`.
std::string text_of_rank(Communicator& all, const World& world, const std::string& text, int root);

/// What the ranks have, each thing as the lowest rank has it that has it at all. All call it, like
/// operations of `all`.
std::map<std::string, std::string> together(Communicator& all, const World& world,
                                            const std::map<std::string, std::string>& own);

}  // namespace fluid
