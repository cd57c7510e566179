// A GPU library that lets the host stand in for GPUs, so that whole programs run. Environment
// variables:
//   FLUID_STAND_IN_PACE           early, late or random
//   FLUID_STAND_IN_MEMORY         bytes of memory
//   FLUID_STAND_IN_OBJECT         bytes of memory of each object
//   FLUID_STAND_IN_DEVICES        number of GPUs
//   FLUID_STAND_IN_FAILS          "NAME CALLS": function NAME fails after CALLS calls
//   FLUID_STAND_IN_NAME           name of the GPUs
//   FLUID_STAND_IN_ROWS           rows of the largest product that the library supports
//   FLUID_STAND_IN_ROWS_COMPUTED  rows of the largest product that does not fail when it runs
//   FLUID_STAND_IN_PARTS          any value: split-K is faster
//   FLUID_STAND_IN_OVERLAPS       file that gets the number of overlapping graph launches at exit

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/host_gpu.h"

namespace {

using fluid::testing::HostPace;

std::string named(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : otherwise;
}

HostPace pace() {
  const std::string name = named("FLUID_STAND_IN_PACE", "random");
  return name == "early" ? HostPace::early : name == "late" ? HostPace::late : HostPace::random;
}

struct TellsOverlaps {
  ~TellsOverlaps() {
    const std::string file = named("FLUID_STAND_IN_OVERLAPS", "");
    if (!file.empty()) std::ofstream(file) << fluid::testing::host_gpu_overlaps();
  }
};

}  // namespace

extern "C" const FluidGpuTable* fluid_gpu_table(uint32_t version) {
  fluid::testing::reset_host_gpu(
      {.pace = pace(),
       .memory = std::stoll(named("FLUID_STAND_IN_MEMORY", "1073741824")),
       .devices = std::stoi(named("FLUID_STAND_IN_DEVICES", "1")),
       .first = std::stoi(named("FLUID_STAND_IN_FIRST", "0")),
       .object_bytes = std::stoll(named("FLUID_STAND_IN_OBJECT", "0")),
       .name = named("FLUID_STAND_IN_NAME", "a host that stands in for a GPU"),
       .most_rows = std::stoll(named("FLUID_STAND_IN_ROWS", "65536")),
       .most_rows_computed = std::stoll(named("FLUID_STAND_IN_ROWS_COMPUTED", "65536")),
       .split_k_is_fast = std::getenv("FLUID_STAND_IN_PARTS") != nullptr});
  static const TellsOverlaps at_the_end;  // constructed last, so destroyed before its state
  std::istringstream fails(named("FLUID_STAND_IN_FAILS", ""));
  std::string name;
  int calls = 0;
  if (fails >> name >> calls) fluid::testing::fail_host_gpu(name, fluid_gpu_failed, calls);
  return version == FLUID_GPU_TABLE_VERSION ? &fluid::testing::host_gpu_table() : nullptr;
}
