// One HTTP request over a unix socket, waited for.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace mariner::client {

struct HttpCall {
  std::string_view method;  // "GET"
  std::string target;       // path and query, percent-encoded
  std::string body;
  std::string_view content_type = "application/json";  // of a body that is not empty
};

struct HttpAnswer {
  int status = 0;
  std::string body;                               // of a streamed answer: the last line, or nothing
  std::map<std::string, std::string> trailers{};  // "Mariner-...", at the end of a streamed one
};

inline constexpr std::size_t kAnswerBytesMax = 256u << 20;

// Sends `call` to the socket `path` and waits for the answer; each single step may take `timeout`.
// Lines of a streamed answer, but the last, go to `on_line`. kUnavailable: nobody listens, no
// permission, or no answer in time. kLimit: the answer is longer than kAnswerBytesMax.
// With `on_bytes` the bytes of an answer of status 200 go there, as they come; its error ends the
// call.
using OnBytes = std::function<Result<void>(std::string_view bytes)>;
[[nodiscard]] Result<HttpAnswer> http_call(const std::string& path, const HttpCall& call,
                                           std::chrono::seconds timeout,
                                           const std::function<void(std::string_view)>& on_line,
                                           const OnBytes& on_bytes = {});

// Why the daemon is not reached at the socket `path`: connect() failed with this errno.
[[nodiscard]] Error connect_error(const std::string& path, int error_number);

}  // namespace mariner::client
