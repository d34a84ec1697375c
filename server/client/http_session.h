// HTTP requests over a unix socket, one after the other on one connection.
//
// It connects when it has to: at first, and when the daemon has closed the connection since, as it
// does when nobody asks for a while. A request that met that end is sent once more, so it has to be
// one that may be repeated. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "proto/error.h"
#include "server/client/http_client.h"

namespace mariner::client {

class HttpSession {
 public:
  // Each single step may take `timeout`.
  HttpSession(std::string path, std::chrono::seconds timeout)
      : path_(std::move(path)), timeout_(timeout) {}
  ~HttpSession() { close(); }
  HttpSession(HttpSession&& other) noexcept
      : path_(std::move(other.path_)),
        timeout_(other.timeout_),
        fd_(std::exchange(other.fd_, -1)),
        ended_(other.ended_),
        request_(std::move(other.request_)),
        fresh_(other.fresh_),
        begun_(std::move(other.begun_)) {}
  HttpSession& operator=(HttpSession&&) = delete;

  // As http_call(), but for streamed answers: kProtocol. With `to`, which is not empty, the body of
  // an answer of status 200 comes there, and has just its length (kProtocol otherwise).
  [[nodiscard]] Result<HttpAnswer> call(const HttpCall& call, std::span<std::byte> to = {});
  // The same in two steps, so that something else is done meanwhile: each begin() is followed by
  // finish(), which says all that went wrong.
  void begin(const HttpCall& call);
  [[nodiscard]] Result<HttpAnswer> finish(std::span<std::byte> to = {});

 private:
  struct Head;
  Result<void> connect();
  void close();
  Result<void> send();
  // `ended`: the connection had an end before a byte of an answer came.
  Result<HttpAnswer> receive_answer(std::span<std::byte> to, bool& ended);
  Result<Head> receive_head(bool& ended);
  Result<std::size_t> receive(std::span<std::byte> to, int flags);

  std::string path_;
  std::chrono::seconds timeout_;
  int fd_ = -1;
  bool ended_ = false;  // as far as has been seen
  // Under way.
  std::string request_;
  bool fresh_ = false;  // the connection was made for it
  Result<void> begun_;
};

}  // namespace mariner::client
