#include "tests/support/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "executor/comm/wire.h"
#include "ir/error.h"

namespace fluid::testing {

namespace {

int pipe_to_parent = -1;

std::string result_of(const Ranks::Body& body, const World& world) {
  try {
    return body(world);
  } catch (const UserError& e) {
    return std::string("UserError: ") + e.what();
  } catch (const DeviceError& e) {
    return std::string("DeviceError: ") + e.what();
  }
}

void write_all(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = ::write(pipe_to_parent, text.data() + done, text.size() - done);
    if (n <= 0) _exit(1);
    done += static_cast<size_t>(n);
  }
}

}  // namespace

int free_port() {
  // Below the ephemeral ports, which the kernel gives to other connections, and a series of its own
  // for each process: tests that run side by side must not take each other's port.
  constexpr int kFirst = 10000, kPorts = 20000, kStride = 97;
  static int next = getpid() * kStride;
  while (true) {
    const int port = kFirst + next++ % kPorts;
    try {
      return comm::port_of(comm::listen_at("127.0.0.1", port));
    } catch (const UserError&) {  // taken
    }
  }
}

World loopback_world(int size) {
  World world;
  world.size = size;
  world.port = free_port();
  world.job = "test";
  return world;
}

void say(const std::string& line) { write_all(line + "\n"); }

Ranks::Ranks(World world, int count, const Body& body) {
  for (int rank = 0; rank < count; ++rank) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t id = fork();
    EXPECT_GE(id, 0);
    if (id == 0) {
      close(ends[0]);
      for (const Process& other : processes_) close(other.output);
      pipe_to_parent = ends[1];
      world.rank = world.local_rank = rank;
      write_all(result_of(body, world));
      _exit(0);
    }
    close(ends[1]);
    processes_.push_back({id, ends[0], ""});
  }
}

Ranks::~Ranks() {
  for (Process& process : processes_) {
    close(process.output);
    kill(process.id, SIGKILL);  // not waited for yet, so the id is still its own
    waitpid(process.id, nullptr, 0);
  }
}

void Ranks::signal(int rank, int number) {
  ASSERT_EQ(kill(processes_[static_cast<size_t>(rank)].id, number), 0);
}

bool Ranks::read_more(Process& process) {
  pollfd wanted{process.output, POLLIN, 0};
  if (poll(&wanted, 1, 60000) == 0) {
    ADD_FAILURE() << "process " << process.id << " does not end; so far: " << process.text;
    return false;
  }
  char bytes[4096];
  ssize_t n = ::read(process.output, bytes, sizeof bytes);
  if (n > 0) process.text.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

std::string Ranks::line(int rank) {
  Process& process = processes_[static_cast<size_t>(rank)];
  while (process.text.find('\n') == std::string::npos && read_more(process)) {
  }
  size_t end = process.text.find('\n');
  if (end == std::string::npos) return std::exchange(process.text, "");
  std::string line = process.text.substr(0, end);
  process.text.erase(0, end + 1);
  return line;
}

std::string Ranks::result(int rank) {
  Process& process = processes_[static_cast<size_t>(rank)];
  while (read_more(process)) {
  }
  return process.text;
}

std::vector<std::string> Ranks::results() {
  std::vector<std::string> all;
  for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
    all.push_back(result(rank));
  }
  return all;
}

}  // namespace fluid::testing
