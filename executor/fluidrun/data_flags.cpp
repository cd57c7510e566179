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

/// Drops the columns that no feed of `program` is named after, and says so. `must_feed_all` also
/// names the feeds that no column is fed to.
void keep_feeds(DataSource& source, const Program& program, const std::string& spec,
                bool must_feed_all) {
  Dataset& data = source.dataset;
  std::vector<std::string> feeds, feeds_left, unused;
  for (const ir::Op* feed : feeds_of(program.ir())) {
    feeds.push_back(feed->symbol);
    if (data.find(feed->symbol) == nullptr) feeds_left.push_back(feed->symbol);
  }
  for (const auto& [name, column] : data.columns) {
    if (std::ranges::find(feeds, name) == feeds.end()) unused.push_back(name);
  }
  if (unused.size() == data.columns.size()) {
    throw UserError(fmt::format("data '{}' has columns {}, but the program's feeds are {}", spec,
                                fmt::join(unused, ", "), fmt::join(feeds, ", ")));
  }
  std::erase_if(data.columns, [&](const auto& column) {
    return std::ranges::find(unused, column.first) != unused.end();
  });
  if (unused.size() == 1 && feeds_left.size() == 1) {
    print_to(stderr,
             "data '{0}': column '{1}' is not used, no feed has its name; add {1}={2} to the data "
             "to feed it to '{2}'\n",
             spec, unused[0], feeds_left[0]);
    return;
  }
  for (const std::string& name : unused) {
    print_to(stderr, "data '{}': column '{}' is not used, no feed has its name{}\n", spec, name,
             did_you_mean(name, feeds_left));
  }
  if (!must_feed_all) return;
  for (const std::string& feed : feeds_left) {
    print_to(stderr, "data '{}': no column is fed to '{}'; write {}\n", spec, feed, source.usage);
  }
}

}  // namespace

Reader open_in_order(const Program& program, const std::string& spec, int64_t batch) {
  DataSource source = open_data(spec, "test");
  keep_feeds(source, program, spec, /*must_feed_all=*/false);
  if (batch == 0) batch = source.full_batch ? source.dataset.samples() : kDefaultBatch;
  return Reader(std::move(source.dataset), {.batch = batch});
}

Reader open_reader(const Program& program, const std::string& spec, const std::string& split,
                   int64_t batch, std::optional<uint64_t> shuffle_seed, bool drop_last,
                   const World& world) {
  DataSource source = open_data(spec, split);
  keep_feeds(source, program, spec, /*must_feed_all=*/true);
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
