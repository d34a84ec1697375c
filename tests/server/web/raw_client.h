// A blocking client that sends any bytes to a socket, with a second thread's worth of patience:
// the server runs on the caller's io_context in a thread of its own (ServerThread).
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <string_view>
#include <thread>

namespace mariner::web {

// Runs an io_context until it is destroyed.
class ServerThread {
 public:
  ServerThread() : work_(boost::asio::make_work_guard(io)), thread_([this] { io.run(); }) {}
  ~ServerThread() {
    work_.reset();
    thread_.join();
  }
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  // Runs `f` on the server's thread and waits for its result.
  template <typename F>
  auto run(F f) {
    std::packaged_task<decltype(f())()> task(std::move(f));
    auto result = task.get_future();
    boost::asio::post(io, [&task] { task(); });
    return result.get();
  }

  boost::asio::io_context io{1};

 private:
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

class RawClient {
 public:
  explicit RawClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }

  // False if the server has closed the connection.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Whether something arrives, or the server closes, within `wait`.
  [[nodiscard]] bool readable(std::chrono::milliseconds wait) const {
    pollfd poll_fd{fd_, POLLIN, 0};
    return ::poll(&poll_fd, 1, static_cast<int>(wait.count())) == 1;
  }

  // What arrives until the server closes, until `end` has arrived, or for five seconds.
  std::string receive(std::string_view end = {}) const {
    std::string received;
    std::array<char, 16384> buffer{};
    pollfd poll_fd{fd_, POLLIN, 0};
    while (::poll(&poll_fd, 1, 5000) == 1) {
      const auto n = ::recv(fd_, buffer.data(), buffer.size(), 0);
      if (n <= 0) return received;
      received.append(buffer.data(), static_cast<std::size_t>(n));
      if (!end.empty() && received.find(end) != std::string::npos) return received;
    }
    return received + "(timeout)";
  }

 private:
  int fd_;
  bool connected_ = false;
};

}  // namespace mariner::web
