#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace fluid::comm {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::milliseconds;

/// A message between the store's server and a client. Every request gets one answer.
struct Message {
  enum class Kind : uint8_t {
    hello,    ///< text: the job, value: "RANK SIZE"; waits up to `number` ms for all ranks
    set,      ///< text: key, value: its value
    get,      ///< text: key; waits up to `number` ms until it is set
    add,      ///< text: key, number: summand; the answer holds the sum
    propose,  ///< text: key, value: proposed value; the answer holds the first proposal
    /// `number`: index of a key in order of arrival; the answer's text is the key, its value the
    /// first proposal.
    proposal,
    beat,     ///< heartbeat; number: collectives that the rank has started
    barrier,  ///< number: which barrier; waits briefly until every rank has reached it
    /// Asks which rank to blame. Waits up to `number` ms for certainty. text: kCertain accepts no
    /// guess. value: number of the failed collective, or "" for another call.
    verdict,
    leave,    ///< this rank no longer needs the others
    done,     ///< answer: value, number
    expired,  ///< answer: the wait timed out, value says for what; or there is no such key
    refused,  ///< answer: value describes the user's mistake
  };
  Kind kind = Kind::done;
  int64_t number = 0;
  std::string text;
  std::string value;
};

inline constexpr const char* kCertain = "certain";

/// Serialises `message` with a length prefix.
std::string pack(const Message& message);

/// Removes the first complete message from `bytes`; nullopt while it is incomplete. Throws
/// DeviceError for malformed bytes.
std::optional<Message> unpack(std::string& bytes);

/// Owns a socket, or none. Move-only.
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

/// Listens on `port`: on loopback if `host` is a loopback address, else on all addresses. Throws
/// UserError when the port is in use or not permitted.
Socket listen_at(const std::string& host, int port);

/// The port of `listener`. If port 0 was requested, the system has chosen a free one.
int port_of(const Socket& listener);

/// Connects, retrying until `deadline` while nobody listens. Throws UserError when `host` does not
/// resolve, and DeviceError at the deadline.
Socket connect_to(const std::string& host, int port, Clock::time_point deadline);

/// The local address of a connection, by which other hosts reach this one.
std::string local_address(const Socket& socket);

/// Sends one message. False when the connection is closed or `deadline` has passed.
bool send(const Socket& socket, const Message& message, Clock::time_point deadline);
/// Receives one message through `buffer`. Returns nullopt when the connection is closed or
/// `deadline` has passed.
std::optional<Message> receive(const Socket& socket, std::string& buffer,
                               Clock::time_point deadline);

/// Time-out for poll() until `deadline`, rounded up, never negative.
int poll_ms(Clock::time_point deadline);

}  // namespace fluid::comm
