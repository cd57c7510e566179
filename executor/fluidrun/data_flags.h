#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/options/world.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace CLI {
class App;
}

namespace fluid {

/// Samples a step takes when the user does not say and the data has no preference.
inline constexpr int64_t kDefaultBatch = 100;

/// Opens a data SPEC for reading in batches of `batch` samples for each process of `world`; 0: the
/// data's own choice, all samples or kDefaultBatch. Shuffled by `shuffle_seed` when given and not a
/// single full batch; what the SPEC says itself comes first. Columns that `program` has no feed for
/// are left out, with a note on stderr; throws UserError when none is left. Feeds without a column
/// get a note, too.
Reader open_reader(const Program& program, const std::string& spec, const std::string& split,
                   int64_t batch, std::optional<uint64_t> shuffle_seed, bool drop_last,
                   const World& world = {});
/// The same for `predict`: feeds may lack a column, and the data's order stays.
Reader open_in_order(const Program& program, const std::string& spec, int64_t batch);

/// --batch of commands that read data; 0 when it is not given.
void add_batch(CLI::App& command, int64_t& batch);
void add_micro_batches(CLI::App& command, int64_t& micro_batches);

/// The help text that lists the kinds of data.
std::string data_help();

}  // namespace fluid
