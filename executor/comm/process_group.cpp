#include "executor/comm/process_group.h"

#include <xxhash.h>

#include <exception>

#include "executor/comm/communicator.h"
#include "ir/error.h"

namespace fluid {
namespace {

std::unique_ptr<Communicator> communicator_of(const ExecutorOptions& options) {
  if (options.distributed.world.size == 1 && !options.distributed.force_collectives) return nullptr;
  auto communicator =
      make_communicator(options.distributed.world, options.distributed.rendezvous_timeout);
  communicator->set_timeout(options.distributed.comm_timeout);
  return communicator;
}

}  // namespace

ProcessGroup::ProcessGroup(Place place, const ExecutorOptions& options)
    : world_(options.distributed.world),
      rendezvous_timeout_(options.distributed.rendezvous_timeout),
      communicator_(communicator_of(options)) {
  if (!is_single_process())
    fluid::check_equal(*communicator_, world_, "kind of place", place == cpu() ? 0 : 1);
}

void ProcessGroup::startup_barrier() {
  barrier();
  started_ = true;
}

void ProcessGroup::barrier() {
  if (!is_single_process()) communicator_->barrier(rendezvous_timeout_);
}

void ProcessGroup::ensure_startup_barrier() {
  if (!started_) barrier();
}

std::string ProcessGroup::broadcast_from_rank_0(const std::string& text) {
  if (is_single_process()) return text;
  ensure_startup_barrier();
  return broadcast_text(*communicator_, world_, text, 0);
}

void ProcessGroup::run_on_rank_0(const std::function<void()>& work) {
  std::string failure;
  std::exception_ptr thrown;
  try {
    if (world_.rank == 0) work();
  } catch (const std::exception& e) {
    failure = e.what();
    thrown = std::current_exception();
  }
  if (started_) barrier();
  failure = broadcast_from_rank_0(failure);
  if (thrown) std::rethrow_exception(thrown);
  if (!failure.empty()) throw UserError("rank 0: " + failure);
}

void ProcessGroup::check_equal(const std::string& subject, const std::string& value) {
  if (is_single_process()) return;
  ensure_startup_barrier();
  fluid::check_equal(*communicator_, world_, subject, XXH3_64bits(value.data(), value.size()));
}

void ProcessGroup::check_equal(const std::string& subject,
                               const std::map<std::string, std::string>& values) {
  if (is_single_process()) return;
  ensure_startup_barrier();
  fluid::check_equal(*communicator_, world_, subject, values);
}

void ProcessGroup::all_reduce(std::span<double> values) {
  if (is_single_process()) return;
  ensure_startup_barrier();
  communicator_->all_reduce(values.data(), static_cast<int64_t>(values.size()), f64);
}

std::string ProcessGroup::broadcast_first_nonempty(const std::string& message) {
  if (is_single_process()) return message;
  barrier();
  return fluid::broadcast_first_nonempty(*communicator_, world_, message);
}

std::map<std::string, std::string> ProcessGroup::merge_by_lowest_rank(
    const std::map<std::string, std::string>& own_values) {
  if (is_single_process()) return own_values;
  ensure_startup_barrier();
  return fluid::merge_by_lowest_rank(*communicator_, world_, own_values);
}

}  // namespace fluid
