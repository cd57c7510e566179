#include "tests/support/host_gpu_work.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>

namespace fluid::testing {
namespace {

using Work = std::shared_ptr<HostWork>;

constexpr std::chrono::minutes kPatience{1};

bool is_next(const Work& work) {
  return std::ranges::all_of(work->after, [](const Work& w) { return w->done; });
}

/// Releases everything that the work holds.
void empty(HostWork& work) {
  work.after.clear();
  work.run = nullptr;
  work.others = nullptr;
}

void stand_for(HostEvent& event, const Work& done) {
  event.noted = true;
  event.stands_for = {done};
}

bool is_ready(const Work& work) {
  return is_next(work) && (!work->others || work->others(work.get()));
}

/// Copies recorded work into a graph of its own, so that the events of the capture no longer refer
/// to it.
HostFrontier moved(const HostFrontier& recorded) {
  HostFrontier graph;
  std::map<Work, Work> moves;
  for (const Work& work : recorded) {
    auto own = std::make_shared<HostWork>(HostWork{.run = std::move(work->run),
                                                   .given = std::move(work->given),
                                                   .others = std::move(work->others),
                                                   .noted = work->noted});
    for (const Work& first : work->after) own->after.push_back(moves.at(first));
    graph.push_back(moves[work] = own);
  }
  return graph;
}

/// All that has to be done before `last` is.
std::set<Work> before(const HostFrontier& last) {
  std::set<Work> found;
  std::vector<Work> todo = last;
  while (!todo.empty()) {
    const Work work = todo.back();
    todo.pop_back();
    if (found.insert(work).second) todo.insert(todo.end(), work->after.begin(), work->after.end());
  }
  return found;
}

}  // namespace

bool HostScheduler::is_done(const HostFrontier& work) {
  return std::ranges::all_of(work, [](const Work& w) { return w->done; });
}

bool HostScheduler::run_one() {
  std::vector<size_t> ready;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (is_ready(pending_[i])) ready.push_back(i);
  }
  if (ready.empty()) return false;
  const size_t chosen = ready[random_() % ready.size()];
  const Work work = pending_[chosen];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(chosen));
  try {
    work->run();
  } catch (...) {
    pending_.push_back(work);
    for (const Work& lost : pending_) empty(*lost);
    pending_.clear();
    throw;
  }
  work->done = true;
  work->done_at = ++now_;
  empty(*work);
  if (work->noted != nullptr) stand_for(*work->noted, work);
  return true;
}

void HostScheduler::run(const std::function<bool()>& until) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!until()) {
    if (run_one()) continue;
    if (!std::ranges::any_of(pending_, [](const Work& w) { return w->others && is_next(w); }))
      return;
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("other processes have not come within a minute");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void HostScheduler::run_until_done(const HostFrontier& work) {
  run([&] { return is_done(work); });
}

void HostScheduler::run_all() {
  run([&] { return pending_.empty(); });
}

void HostScheduler::pass() {
  while (pace_ == HostPace::early && run_one()) continue;
  if (pace_ != HostPace::random) return;
  for (uint64_t n = random_() % 4; n > 0 && run_one(); --n) continue;
}

void HostScheduler::add(HostStream& stream, HostWork work) {
  HostFrontier& last = stream.capture ? stream.recorded : stream.queued;
  work.after = last;
  const auto added = std::make_shared<HostWork>(std::move(work));
  (stream.capture ? stream.capture->recorded : pending_).push_back(added);
  last = {added};
}

void HostScheduler::note(HostEvent& event, const HostStream& stream) const {
  if (event.times && stream.capture) {
    stream.recorded.back()->noted = &event;
    return;
  }
  event.noted = true;
  event.capture = stream.capture;
  event.stands_for = stream.capture ? stream.recorded : stream.queued;
}

void HostScheduler::wait(HostStream& stream, const HostEvent& event) const {
  if (!event.noted) return;
  if (event.capture && event.capture->ended) throw misused("the event was noted in a capture");
  if (stream.capture && event.capture != stream.capture) {
    stream.capture->lost = true;
    throw misused("a recorded stream waits for an event that was not recorded with it");
  }
  if (event.capture && !stream.capture) stream.capture = event.capture;
  HostFrontier& last = event.capture ? stream.recorded : stream.queued;
  last.insert(last.end(), event.stands_for.begin(), event.stands_for.end());
}

void HostScheduler::begin_capture(HostStream& stream, const std::vector<HostStream*>& all) {
  for (const HostStream* other : all) {
    if (other->capture) throw misused("a stream of this GPU is recorded already");
  }
  stream.capture = std::make_shared<HostCapture>(HostCapture{.origin = &stream});
  stream.recorded.clear();
}

HostFrontier HostScheduler::end_capture(HostStream& stream, const std::vector<HostStream*>& all) {
  if (!stream.capture || stream.capture->origin != &stream) {
    throw misused("no capture began on this stream");
  }
  const std::shared_ptr<HostCapture> capture = stream.capture;
  capture->ended = true;
  const size_t joined = before(stream.recorded).size();
  for (HostStream* other : all) {
    if (other->capture != capture) continue;
    other->capture.reset();
    other->recorded.clear();
  }
  if (capture->lost) throw misused("the capture was lost by a call that is not allowed meanwhile");
  if (joined != capture->recorded.size()) {
    throw misused("work of another stream was recorded, which the first never waited for");
  }
  return moved(capture->recorded);
}

void HostScheduler::launch(const HostFrontier& graph, HostStream& stream) {
  if (stream.capture) {
    stream.capture->lost = true;
    throw misused("a graph is launched while its stream is recorded");
  }
  std::map<Work, Work> copies;
  for (const Work& recorded : graph) {
    auto work = std::make_shared<HostWork>(HostWork{.run = recorded->run,
                                                    .after = stream.queued,
                                                    .others = recorded->others,
                                                    .noted = recorded->noted});
    for (const Work& first : recorded->after) work->after.push_back(copies.at(first));
    pending_.push_back(work);
    copies[recorded] = std::move(work);
  }
  for (const auto& [recorded, work] : copies) stream.queued.push_back(work);
}

}  // namespace fluid::testing
