#include "executor/comm/process_group.h"

#include <xxhash.h>

#include <exception>

#include "executor/comm/agree.h"
#include "ir/error.h"

namespace fluid {
namespace {

std::unique_ptr<Communicator> communicator_of(const ExecutorOptions& options) {
  if (options.world.size == 1 && !options.force_collectives) return nullptr;
  auto communicator = make_communicator(options.world, options.first_timeout);
  communicator->set_timeout(options.comm_timeout);
  return communicator;
}

}  // namespace

ProcessGroup::ProcessGroup(Place place, const ExecutorOptions& options)
    : world_(options.world),
      patience_(options.first_timeout),
      communicator_(communicator_of(options)) {
  if (!alone()) fluid::agree(*communicator_, world_, "kind of place", place == cpu() ? 0 : 1);
}

void ProcessGroup::start() {
  meet();
  started_ = true;
}

void ProcessGroup::meet() {
  if (!alone()) communicator_->meet(patience_);
}

void ProcessGroup::meet_before_start() {
  if (!started_) meet();
}

std::string ProcessGroup::share(const std::string& text) {
  if (alone()) return text;
  meet_before_start();
  return text_of_rank(*communicator_, world_, text, 0);
}

void ProcessGroup::lead(const std::function<void()>& work) {
  std::string failure;
  std::exception_ptr thrown;
  try {
    if (world_.rank == 0) work();
  } catch (const std::exception& e) {
    failure = e.what();
    thrown = std::current_exception();
  }
  if (started_) meet();
  failure = share(failure);
  if (thrown) std::rethrow_exception(thrown);
  if (!failure.empty()) throw UserError("rank 0: " + failure);
}

void ProcessGroup::agree(const std::string& what, const std::string& value) {
  if (alone()) return;
  meet_before_start();
  fluid::agree(*communicator_, world_, what, XXH3_64bits(value.data(), value.size()));
}

void ProcessGroup::agree(const std::string& what,
                         const std::map<std::string, std::string>& values) {
  if (alone()) return;
  meet_before_start();
  fluid::agree(*communicator_, world_, what, values);
}

void ProcessGroup::add_up(std::span<double> figures) {
  if (alone()) return;
  meet_before_start();
  communicator_->all_reduce(figures.data(), static_cast<int64_t>(figures.size()), f64);
}

std::string ProcessGroup::first_said(const std::string& here) {
  if (alone()) return here;
  meet();
  return fluid::first_said(*communicator_, world_, here);
}

}  // namespace fluid
