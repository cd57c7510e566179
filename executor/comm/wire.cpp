#include "executor/comm/wire.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "ir/error.h"

namespace fluid::comm {

namespace {

constexpr uint32_t kMaxMessageBytes = 64 << 20;
constexpr size_t kHeaderBytes = sizeof(uint8_t) + sizeof(int64_t) + sizeof(uint32_t);

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T read_at(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Resolves `host`, or the wildcard address if `host` is null.
Addresses resolve(const char* host, int port, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  // /etc/hosts of a minimal system may lack an entry for localhost.
  if (host != nullptr && std::string_view(host) == "localhost" && family != AF_INET6) {
    host = "127.0.0.1";
  }
  int error = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw UserError("the master's address '" + std::string(host ? host : "") +
                    "' names no host: " + gai_strerror(error) + " (MASTER_ADDR)");
  }
  return {found, freeaddrinfo};
}

Socket socket_for(const addrinfo& address) {
  return Socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

[[noreturn]] void fail_to_listen(int port) {
  throw UserError("rank 0 cannot listen on port " + std::to_string(port) + ": " +
                  std::strerror(errno) + ": give all ranks another (MASTER_PORT or FLUID_PORT)");
}

bool wait_for(const Socket& socket, short events, Clock::time_point deadline) {
  pollfd wanted{socket.fd(), events, 0};
  int ready;
  do {
    ready = poll(&wanted, 1, poll_timeout_ms(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

/// Connects a non-blocking socket. Returns 0, or the errno of the failure.
int try_connect(const Socket& socket, const addrinfo& address, Clock::time_point deadline) {
  if (connect(socket.fd(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

std::string pack(const Message& message) {
  std::string bytes;
  append(bytes, static_cast<uint32_t>(kHeaderBytes + message.text.size() + message.value.size()));
  append(bytes, message.kind);
  append(bytes, message.number);
  append(bytes, static_cast<uint32_t>(message.text.size()));
  return bytes + message.text + message.value;
}

std::optional<Message> unpack(std::string& bytes) {
  size_t size = sizeof(uint32_t);
  if (bytes.size() < size) return std::nullopt;
  auto body = read_at<uint32_t>(bytes, 0);
  if (body < kHeaderBytes || body > kMaxMessageBytes) {
    throw DeviceError("the peer of a connection to the store is not a process of this program");
  }
  if (bytes.size() < size + body) return std::nullopt;
  auto kind = read_at<Message::Kind>(bytes, size);
  auto number = read_at<int64_t>(bytes, size + sizeof kind);
  auto text = read_at<uint32_t>(bytes, size + sizeof kind + sizeof number);
  if (kind > Message::Kind::user_error || text > body - kHeaderBytes) {
    throw DeviceError("the peer of a connection to the store is not a process of this program");
  }
  size_t begin = size + kHeaderBytes;
  Message message{kind, number, bytes.substr(begin, text),
                  bytes.substr(begin + text, body - kHeaderBytes - text)};
  bytes.erase(0, size + body);
  return message;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(release());
}

int Socket::release() { return std::exchange(fd_, -1); }

Socket bind_at(const std::string& host, int port) {
  bool loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
  // `host` might not resolve on this machine, so listen on all addresses.
  int family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
  Addresses addresses = resolve(loopback ? host.c_str() : nullptr, port, family);
  Socket socket = socket_for(*addresses);
  int yes = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket.fd(), addresses->ai_addr, addresses->ai_addrlen) != 0) fail_to_listen(port);
  return socket;
}

Socket listen_at(const std::string& host, int port) {
  Socket socket = bind_at(host, port);
  if (listen(socket.fd(), SOMAXCONN) != 0) fail_to_listen(port);
  return socket;
}

int port_of(const Socket& bound) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  check(getsockname(bound.fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
        "a bound socket has an address");
  const bool v6 = address.ss_family == AF_INET6;
  return ntohs(v6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                  : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

Socket connect_to(const std::string& host, int port, Clock::time_point deadline) {
  Addresses addresses = resolve(host.c_str(), port, AF_UNSPEC);
  while (true) {
    int error = 0;
    for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
      Socket socket = socket_for(*address);
      error = socket.is_open() ? try_connect(socket, *address, deadline) : errno;
      if (error != 0) continue;
      int yes = 1;
      setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      return socket;
    }
    if (Clock::now() >= deadline) {
      throw DeviceError("rank 0 does not answer at " + host + ", port " + std::to_string(port) +
                        ": " + std::strerror(error) +
                        ": has it been started, with the same address and port?");
    }
    std::this_thread::sleep_for(Duration(20));
  }
}

std::string local_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = "";
  check(getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
            getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
                        NI_NUMERICHOST) == 0,
        "a connected socket has an address");
  return text;
}

bool send(const Socket& socket, const Message& message, Clock::time_point deadline) {
  std::string bytes = pack(message);
  for (size_t sent = 0; sent < bytes.size();) {
    ssize_t n = ::send(socket.fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN ? !wait_for(socket, POLLOUT, deadline) : errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::optional<Message> receive(const Socket& socket, std::string& buffer,
                               Clock::time_point deadline) {
  while (true) {
    if (auto message = unpack(buffer)) return message;
    char bytes[4096];
    ssize_t n = recv(socket.fd(), bytes, sizeof bytes, 0);
    if (n > 0) {
      buffer.append(bytes, static_cast<size_t>(n));
    } else if (n == 0 || (errno == EAGAIN ? !wait_for(socket, POLLIN, deadline) : errno != EINTR)) {
      return std::nullopt;
    }
  }
}

int poll_timeout_ms(Clock::time_point deadline) {
  auto left = std::chrono::ceil<Duration>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

}  // namespace fluid::comm
