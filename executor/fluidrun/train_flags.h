#pragma once

#include <cstdint>
#include <string>

#include "executor/fluidrun/common.h"
#include "executor/fluidrun/fit_flags.h"
#include "executor/fluidrun/profile_flags.h"
#include "executor/fluidrun/world_flags.h"

namespace fluid {

struct TrainFlags {
  std::string program, data, val, params, params_layout, save, log_json;
  int64_t epochs = 1, batch = 0, micro_batches = 1, max_steps = 0;
  uint64_t seed = 0;
  double lr = 0;
  bool drop_last = false, verify_plan = false, check_finite = false;
  BestFlags best;
  CheckpointFlags checkpoint;
  WorldFlags world;
  PlaceFlags place;
  ProfileFlags profile;
};

}  // namespace fluid
