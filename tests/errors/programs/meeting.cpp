// A rank that joins the world that its environment variables describe.

#include <chrono>
#include <cstdio>

#include "executor/comm/store.h"
#include "executor/options/world.h"
#include "ir/error.h"
using namespace fluid;

int main() try {
  const World world = World::from_env();
  comm::Store store(world, std::chrono::seconds(30));
  store.set("rank " + std::to_string(world.rank), std::to_string(world.local_rank));
  std::printf("restart %d, rank %d of %d sees", world.restart, world.rank, world.size);
  for (int rank = 0; rank < world.size; ++rank) {
    std::printf(" %d=%s", rank, store.get("rank " + std::to_string(rank)).c_str());
  }
  std::printf("\n");
} catch (const UserError& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
