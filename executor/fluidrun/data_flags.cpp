#include "executor/fluidrun/data_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "executor/fluidrun/common.h"
#include "executor/fluidrun/print_to.h"
#include "frontend/readers/spec.h"
#include "ir/error.h"

namespace fluid {
namespace {

void keep_feeds(Dataset& data, const Program& program, const std::string& spec) {
  std::vector<std::string> feeds, unused;
  for (const ir::Op* feed : feeds_of(program.ir())) feeds.push_back(feed->symbol);
  for (const auto& [name, column] : data.columns) {
    if (std::ranges::find(feeds, name) == feeds.end()) unused.push_back(name);
  }
  if (unused.size() == data.columns.size()) {
    throw UserError(fmt::format("data '{}' has columns {}, but the program's feeds are {}", spec,
                                fmt::join(unused, ", "), fmt::join(feeds, ", ")));
  }
  for (const std::string& name : unused) {
    print_to(stderr, "data '{}': column '{}' is not used, no feed has its name{}\n", spec, name,
             did_you_mean(name, feeds));
  }
  std::erase_if(data.columns, [&](const auto& column) {
    return std::ranges::find(unused, column.first) != unused.end();
  });
}

/// Says which feeds the data has no column for.
void note_feeds_left(const DataSource& source, const Program& program, const std::string& spec) {
  for (const ir::Op* feed : feeds_of(program.ir())) {
    if (source.dataset.find(feed->symbol) != nullptr) continue;
    print_to(stderr, "data '{}': no column is fed to '{}'; write {}\n", spec, feed->symbol,
             source.usage);
  }
}

}  // namespace

Reader open_in_order(const Program& program, const std::string& spec, int64_t batch) {
  DataSource source = open_data(spec, "test");
  keep_feeds(source.dataset, program, spec);
  if (batch == 0) batch = source.full_batch ? source.dataset.samples() : kDefaultBatch;
  return Reader(std::move(source.dataset), {.batch = batch});
}

SampleFinder find_in(std::vector<const Reader*> readers) {
  return [readers = std::move(readers)](const std::string& feed, int64_t value) {
    for (const Reader* reader : readers) {
      std::string place = reader->dataset().place_of(feed, value);
      if (!place.empty()) return place;
    }
    return std::string();
  };
}

Reader open_reader(const Program& program, const std::string& spec, const std::string& split,
                   int64_t batch, std::optional<uint64_t> shuffle_seed, bool drop_last,
                   const World& world) {
  DataSource source = open_data(spec, split);
  keep_feeds(source.dataset, program, spec);
  note_feeds_left(source, program, spec);
  const int64_t samples = source.dataset.samples();
  if (batch == 0)
    batch = source.full_batch ? (samples + world.size - 1) / world.size : kDefaultBatch;
  const bool single = batch * world.size >= samples;
  const bool shuffle = source.shuffle.value_or(shuffle_seed.has_value() && !single);
  if (!shuffle) {
    shuffle_seed.reset();
  } else if (!shuffle_seed) {
    shuffle_seed = 0;
  }
  return Reader(std::move(source.dataset), {.batch = batch,
                                            .shuffle_seed = shuffle_seed,
                                            .drop_last = source.drop_last.value_or(drop_last),
                                            .rank = world.rank,
                                            .world = world.size});
}

void add_batch(CLI::App& command, int64_t& batch) {
  command
      .add_option("--batch", batch,
                  fmt::format("samples a step; default: {}, or all of them where the data says so",
                              kDefaultBatch))
      ->check(must_be_count);
}

void add_micro_batches(CLI::App& command, int64_t& micro_batches) {
  command
      .add_option("--micro-batches", micro_batches,
                  "slices that a training step's batch goes through in, to save memory")
      ->check(must_be_count)
      ->capture_default_str();
}

std::string data_help() {
  std::string text = "Data:\n";
  for (const DataKind& kind : data_kinds()) text += "  " + kind.usage + ": " + kind.doc + "\n";
  return text +
         "  each with ?option=value&...: split=train|test, shuffle=0|1, drop_last=0|1, limit=N, "
         "COLUMN=FEED\n"
         "  csv and npy with val=0.2&seed=1: holds out a fifth of the rows for split=test, which "
         "--val, eval\n  and predict take\n";
}

}  // namespace fluid
