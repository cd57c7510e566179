#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace fluid::comm {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::milliseconds;

/// A request to the store's server, or a response. Every request gets one response. The comment of
/// each kind names the fields in use.
struct Message {
  enum class Kind : uint8_t {
    /// Request to join the world. `text` is the job, `value` is "RANK SIZE". The server responds
    /// when all ranks have joined, or after `number` ms.
    hello,
    set,      ///< request: set key `text` to `value`
    get,      ///< request: get key `text`. Waits up to `number` ms until the key is set
    add,      ///< request: add `number` to counter `text`. The response contains the sum
    propose,  ///< request: propose `value` for key `text`. The response contains the first proposal
    /// Request for proposal `number`, counted from 0 in order of arrival. The response contains the
    /// key in `text` and the value in `value`.
    proposal,
    heartbeat,  ///< heartbeat of a rank that has started `number` collectives
    /// Request to enter barrier `number`. The server responds when all ranks have entered the
    /// barrier, or after a heartbeat interval.
    barrier,
    /// Request for a message that names the rank that caused a failure. The server responds when
    /// the failed rank is certain, or after `number` ms. `text` is kOnlyIfCertain, or "" to accept
    /// the most likely rank. `value` is the sequence number of the failed collective, or "" if no
    /// collective failed. The server also sends a diagnosis to all ranks, without a request, as a
    /// message of this kind with the diagnosis in `value`.
    diagnosis,
    leave,  ///< request: the sender leaves the world
    done,   ///< response to a successful request; the fields depend on the request
    /// Response: the wait timed out, or the requested proposal does not exist. After `hello`,
    /// `value` lists the absent ranks.
    expired,
    user_error,  ///< response; `value` is the message of the UserError
  };
  Kind kind = Kind::done;
  int64_t number = 0;
  std::string text;
  std::string value;
};

inline constexpr const char* kOnlyIfCertain = "certain";

/// Serialises `message`, with a length prefix.
std::string pack(const Message& message);

/// Removes the first message from `bytes` and returns it. Returns nullopt while the message is
/// incomplete. Throws DeviceError for malformed bytes.
std::optional<Message> unpack(std::string& bytes);

/// Owns a socket descriptor; -1 means no descriptor. Move-only.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int release();

  int fd_;
};

/// Reserves `port` without listening: on loopback if `host` is a loopback address, else on all
/// addresses. While the socket is open, Linux gives the port to no connection and to no bind() to
/// port 0, but another process may bind it with SO_REUSEADDR and listen. Throws UserError when the
/// port is in use or not permitted.
Socket bind_at(const std::string& host, int port);

/// Listens on `port` at the addresses of bind_at. Throws UserError when the port is in use or not
/// permitted.
Socket listen_at(const std::string& host, int port);

/// Returns the port that `bound` is bound to: a free port chosen by the OS if the requested port
/// was 0.
int port_of(const Socket& bound);

/// Connects to `port` of `host`. Retries until `deadline` while no process listens there. Throws
/// UserError when `host` does not resolve, and DeviceError at the deadline.
Socket connect_to(const std::string& host, int port, Clock::time_point deadline);

/// Returns the local IP address of a connection. Other hosts reach this host at this address.
std::string local_address(const Socket& socket);

/// Sends one message. Returns false when the connection is closed or `deadline` has passed.
bool send(const Socket& socket, const Message& message, Clock::time_point deadline);
/// Receives one message. Bytes received after the message stay in `buffer` for the next call.
/// Returns nullopt when the connection is closed or `deadline` has passed.
std::optional<Message> receive(const Socket& socket, std::string& buffer,
                               Clock::time_point deadline);

/// Returns the milliseconds until `deadline`, as a timeout for poll(): rounded up, never negative.
int poll_timeout_ms(Clock::time_point deadline);

}  // namespace fluid::comm
