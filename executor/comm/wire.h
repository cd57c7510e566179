#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace fluid::comm {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::milliseconds;

/// What a store and those that use it say to each other. Every request has one answer.
struct Message {
  enum class Kind : uint8_t {
    hello,     ///< text: the job, value: "<rank> <size>"; wait for all ranks, for `number` ms
    set,       ///< text: the key, value
    get,       ///< text: the key; wait until it is set, for `number` ms
    add,       ///< text: the key, number: what to add; answered with the sum
    propose,   ///< text: the key, value: what it is to be; answered with what was proposed first
    proposal,  ///< number: of a key in the order in which they came; answered with text: the key,
               ///< value: what was proposed first
    beat,      ///< number: the collectives that this rank has entered
    meet,      ///< number: which meeting; wait a little until every rank has asked for it
    verdict,   ///< asks who is to blame for a failure; wait for a certain answer for `number` ms;
              ///< text kCertain: take no other; value: the number of the collective that failed, ""
              ///< where it is another call
    leave,    ///< this rank needs the others no more
    done,     ///< the answer: value, number
    expired,  ///< the answer: the wait ended first, value says what was waited for; or no such key
    refused,  ///< the answer: value says which mistake of the user's
  };
  Kind kind = Kind::done;
  int64_t number = 0;
  std::string text;
  std::string value;
};

inline constexpr const char* kCertain = "certain";

/// `message` as bytes with their length in front.
std::string pack(const Message& message);

/// Takes the first whole message from the front of `bytes`; nothing while it is not complete.
/// Throws DeviceError for bytes that no store or user of one sends.
std::optional<Message> unpack(std::string& bytes);

/// An open socket, or none. Moves, closes itself.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close();

 private:
  int release();

  int fd_;
};

/// Listens for connections to `host` and `port`: on its loopback alone when `host` is that. Throws
/// UserError when the port is in use or not to be had.
Socket listen_at(const std::string& host, int port);

/// The port that `listener` was given where it asked for port 0: any free one.
int port_of(const Socket& listener);

/// Connects, and tries again until `deadline` while nobody listens. Throws UserError for a host
/// that has no address, DeviceError at the deadline.
Socket connect_to(const std::string& host, int port, Clock::time_point deadline);

/// The address of this end of a connection: how others reach this host.
std::string local_address(const Socket& socket);

/// Sends and receives whole messages; false and nothing when the other end is gone or `deadline`
/// has passed.
bool send(const Socket& socket, const Message& message, Clock::time_point deadline);
std::optional<Message> receive(const Socket& socket, std::string& buffer,
                               Clock::time_point deadline);

/// poll's time-out until `deadline`, rounded up, never negative.
int poll_ms(Clock::time_point deadline);

}  // namespace fluid::comm
