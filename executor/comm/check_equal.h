#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executor/comm/communicator.h"

namespace fluid {

/// Collective. Checks that `hash` is equal on all ranks. If not, throws the same UserError on every
/// rank; it names the ranks that differ from rank 0. `what`: noun for the hashed thing, such as
/// "program".
void check_equal(Communicator& all, const World& world, const std::string& what, uint64_t hash);

/// Collective. Checks that all ranks have equal named values. If not, throws the same UserError on
/// every rank; it also lists the differing values of the lowest rank that differs from rank 0.
void check_equal(Communicator& all, const World& world, const std::string& what,
                 const std::map<std::string, std::string>& values);

/// Collective. Broadcasts the non-empty `text` of the lowest rank, as "rank 1: TEXT"; "" when all
/// are empty.
std::string broadcast_first_message(Communicator& all, const World& world, const std::string& text);

/// Collective. Broadcasts the `text` of rank `root`.
std::string broadcast_text(Communicator& all, const World& world, const std::string& text,
                           int root);

/// Collective. Merges the ranks' maps; for a key that several ranks hold, the lowest rank's value
/// wins.
std::map<std::string, std::string> together(Communicator& all, const World& world,
                                            const std::map<std::string, std::string>& own);

}  // namespace fluid
