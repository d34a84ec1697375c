#include "server/client/http_session.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cerrno>
#include <cstring>

namespace mariner::client {
namespace {

namespace http = boost::beast::http;
constexpr std::size_t kHeadBytesMax = 16u << 10;
constexpr std::size_t kHeadReadBytes = 4096;

Error broke_off(const std::string& why) {
  return Error{ErrorCode::kUnavailable, "the daemon's answer broke off: " + why};
}
Error not_understood(const std::string& why) {
  return Error{ErrorCode::kProtocol, "the daemon's answer is not understood: " + why};
}

}  // namespace

// Of an answer, and what of its body has come with it.
struct HttpSession::Head {
  int status = 0;
  std::uint64_t length = 0;
  bool keep_alive = false;
  std::string body{};
};

void HttpSession::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<void> HttpSession::connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalidArgument,
                 "the path of the socket is longer than 107 characters"};
  }
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return errno_error(errno, "cannot make a socket");
  ended_ = false;
  timeval step{};
  step.tv_sec = timeout_.count();
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &step, sizeof step);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return {};
  const Error error = connect_error(path_, errno);
  close();
  return error;
}

Result<HttpAnswer> HttpSession::call(const HttpCall& call, std::span<std::byte> to) {
  begin(call);
  return finish(to);
}

void HttpSession::begin(const HttpCall& call) {
  request_ = fmt::format("{} {} HTTP/1.1\r\nHost: mariner\r\n", call.method, call.target);
  if (!call.body.empty()) request_ += fmt::format("Content-Type: {}\r\n", call.content_type);
  request_ += fmt::format("Content-Length: {}\r\n\r\n", call.body.size()) + call.body;
  begun_ = send();
}

Result<HttpAnswer> HttpSession::finish(std::span<std::byte> to) {
  for (;;) {
    bool ended = false;
    Result<HttpAnswer> answer = begun_ ? receive_answer(to, ended) : begun_.error();
    if (answer) return answer;
    close();
    if (fresh_ || !ended) return answer;
    begun_ = send();
  }
}

Result<void> HttpSession::send() {
  fresh_ = fd_ < 0;
  if (fresh_) {
    if (const Result<void> connected = connect(); !connected) return connected.error();
  }
  for (std::size_t sent = 0; sent < request_.size();) {
    const ssize_t some = ::send(fd_, request_.data() + sent, request_.size() - sent, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) {
      // (A server that refuses before it has read everything answers, too: read on.)
      if (errno == EPIPE || errno == ECONNRESET) break;
      return broke_off(std::strerror(errno));
    }
    sent += static_cast<std::size_t>(some);
  }
  return {};
}

Result<HttpAnswer> HttpSession::receive_answer(std::span<std::byte> to, bool& ended) {
  Result<Head> head = receive_head(ended);
  if (!head) return head.error();
  HttpAnswer answer{head->status, {}};
  std::span<std::byte> body = to;
  if (head->status != 200 || to.empty()) {
    if (head->length > kAnswerBytesMax) {
      return Error{ErrorCode::kLimit, "the daemon's answer is too long"};
    }
    answer.body.resize(head->length);
    body = std::as_writable_bytes(std::span(answer.body));
  } else if (head->length != to.size()) {
    return not_understood(fmt::format("{} bytes, where {} were expected", head->length, to.size()));
  }
  if (head->body.size() > body.size()) return not_understood("more bytes than it says");
  std::ranges::copy(std::as_bytes(std::span(head->body)), body.begin());
  for (body = body.subspan(head->body.size()); !body.empty();) {
    const Result<std::size_t> came = receive(body, MSG_WAITALL);
    if (!came) return came.error();
    body = body.subspan(*came);
  }
  if (!head->keep_alive) close();
  return answer;
}

Result<HttpSession::Head> HttpSession::receive_head(bool& ended) {
  std::string text;
  for (std::size_t end = std::string::npos; end == std::string::npos;) {
    if (text.size() > kHeadBytesMax) return not_understood("its header is too long");
    const std::size_t before = text.size();
    text.resize(before + kHeadReadBytes);
    const Result<std::size_t> came =
        receive(std::as_writable_bytes(std::span(text)).subspan(before), 0);
    if (!came) {
      ended = ended_ && before == 0;
      return came.error();
    }
    text.resize(before + *came);
    end = text.find("\r\n\r\n", before < 3 ? 0 : before - 3);
  }
  http::response_parser<http::empty_body> parser;
  parser.body_limit(boost::none);
  boost::beast::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(text), error);
  if (error || !parser.is_header_done()) return not_understood(error.message());
  if (!parser.content_length()) return not_understood("it does not say how long it is");
  return Head{static_cast<int>(parser.get().result_int()), *parser.content_length(),
              parser.get().keep_alive(), text.substr(used)};
}

// At least a byte.
Result<std::size_t> HttpSession::receive(std::span<std::byte> to, int flags) {
  for (;;) {
    const ssize_t came = ::recv(fd_, to.data(), to.size(), flags);
    if (came > 0) return static_cast<std::size_t>(came);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("the daemon has not answered for {} s", timeout_.count())};
    }
    ended_ = came == 0 || errno == ECONNRESET;
    return broke_off(came == 0 ? "the connection ended" : std::strerror(errno));
  }
}

}  // namespace mariner::client
