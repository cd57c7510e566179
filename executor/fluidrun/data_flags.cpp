#include "executor/fluidrun/data_flags.h"

#include "frontend/readers/spec.h"

namespace fluid {

Reader open_reader(const std::string& spec, const std::string& split, int64_t batch,
                   std::optional<uint64_t> shuffle_seed, bool drop_last) {
  DataSource source = open_data(spec, split);
  if (batch == 0) batch = source.full_batch ? source.dataset.samples() : kDefaultBatch;
  const bool single = batch >= source.dataset.samples();
  const bool shuffle = source.shuffle.value_or(shuffle_seed.has_value() && !single);
  if (!shuffle) {
    shuffle_seed.reset();
  } else if (!shuffle_seed) {
    shuffle_seed = 0;
  }
  return Reader(std::move(source.dataset), {.batch = batch,
                                            .shuffle_seed = shuffle_seed,
                                            .drop_last = source.drop_last.value_or(drop_last)});
}

std::string data_help() {
  std::string text = "Data:\n";
  for (const DataKind& kind : data_kinds()) text += "  " + kind.usage + ": " + kind.doc + "\n";
  return text +
         "  each with ?option=value&...: split=train|test, shuffle=0|1, drop_last=0|1, limit=N, "
         "COLUMN=FEED\n";
}

}  // namespace fluid
