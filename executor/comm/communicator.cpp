#include "executor/comm/communicator.h"

#include "executor/comm/gloo.h"
#include "ir/error.h"

namespace fluid {

namespace {

/// The communicator of a world of one process: collectives do nothing.
class Alone final : public Communicator {
 public:
  void all_reduce(void*, int64_t, DType) override {}
  void reduce_scatter(void*, int64_t, DType) override {}
  void all_gather(void*, int64_t, DType) override {}
  void broadcast(void*, int64_t, int) override {}
  void barrier(std::chrono::milliseconds) override {}
  void set_timeout(std::chrono::milliseconds) override {}
};

}  // namespace

void Communicator::fail(const std::string& what, int64_t number, const std::string& said) {
  throw DeviceError("cannot go on with " + what + " " + std::to_string(number) +
                    (said.empty() ? ": it does not end" : ": " + said));
}

std::unique_ptr<Communicator> make_communicator(
    const World& world, [[maybe_unused]] std::chrono::milliseconds timeout) {
  if (world.size == 1) return std::make_unique<Alone>();
#ifdef FLUID_GLOO
  return comm::make_gloo(world, timeout);
#else
  throw UserError("this build has no Gloo (FLUID_GLOO=OFF): it runs one process, not " +
                  std::to_string(world.size));
#endif
}

}  // namespace fluid
