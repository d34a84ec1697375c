// What an HTTP handler receives and what it answers with.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::web {

enum class HttpMethod { kGet, kHead, kPost, kPut, kDelete, kOther };

// Parsed and within the server's limits, otherwise as the client sent it: untrusted.
struct HttpRequest {
  HttpMethod method = HttpMethod::kOther;
  std::string path;   // up to the '?', percent-encoded
  std::string query;  // behind the '?', percent-encoded
  std::string body;
  pid_t peer = 0;  // the process that connected to a unix socket
};

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kOctets = "application/octet-stream";

struct HttpResponse {
  int status = 200;
  std::string_view content_type = kPlainText;  // a constant
  std::string body;
  std::string allow;  // with status 405: the allowed methods
  // What follows the body, as it is in memory, if the answer is not streamed.
  std::vector<PayloadSlice> slices{};
  // Let go when the answer has been written, or is not wanted any more.
  std::shared_ptr<const void> keeps{};
};

// What is known at the end of a streamed answer: names and values, of a header's characters.
using HttpTrailers = std::vector<std::pair<std::string, std::string>>;

// Where an answer goes: implemented by the connection.
class HttpChannel {
 public:
  virtual ~HttpChannel() = default;
  virtual void progress(std::string line) = 0;
  virtual void send(HttpResponse response) = 0;
  virtual void on_gone(UniqueFunction<void()> gone) = 0;
  virtual void write(std::string bytes, UniqueFunction<void()> taken) = 0;
  virtual void end(HttpTrailers trailers) = 0;
};

// The one answer to one request. Sent once, now or later, on the server's thread; if it is
// destroyed unsent, the client is told of an internal error. When the client or the server has
// gone meanwhile, answers go nowhere.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<HttpChannel> channel) : channel_(std::move(channel)) {}
  HttpReply(HttpReply&&) = default;
  HttpReply& operator=(HttpReply&&) = delete;
  ~HttpReply() {
    if (channel_ != nullptr) send({500, kPlainText, "the request was dropped\n", {}});
  }

  // Sends `line` ahead of the answer: the body is then streamed, one line at a time, and the
  // answer's body becomes its last line. A line that a slow client has not taken is replaced by
  // the next, so nothing piles up.
  void progress(std::string line) {
    CHECK(channel_ != nullptr);
    channel_->progress(std::move(line));
  }

  void send(HttpResponse response) {
    CHECK(channel_ != nullptr);
    std::exchange(channel_, nullptr)->send(std::move(response));
  }

  // `gone` runs once if the client goes before it has its answer, also while nothing is sent.
  void on_gone(UniqueFunction<void()> gone) {
    CHECK(channel_ != nullptr);
    channel_->on_gone(std::move(gone));
  }

  // An answer of bytes (kOctets, status 200) that come as they are made, not empty: `taken` when
  // the client has them, and the next ones not before, so nothing piles up. A client may take its
  // time (HttpLimits::stream_timeout). It ends with end() in the place of send(); if it is
  // destroyed before, the connection is closed.
  void write(std::string bytes, UniqueFunction<void()> taken) {
    CHECK(channel_ != nullptr);
    channel_->write(std::move(bytes), std::move(taken));
  }
  void end(HttpTrailers trailers) {
    CHECK(channel_ != nullptr);
    std::exchange(channel_, nullptr)->end(std::move(trailers));
  }

 private:
  std::shared_ptr<HttpChannel> channel_;
};

using HttpHandler = UniqueFunction<void(HttpRequest, HttpReply)>;

}  // namespace mariner::web
