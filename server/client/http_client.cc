#include "server/client/http_client.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <cstring>

namespace mariner::client {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using Unix = boost::asio::local::stream_protocol;

// Into as much room as there is; Beast begins with 512 bytes of it.
constexpr std::size_t kReadBytes = 128u << 10;

Error cannot_connect(const std::string& path, const std::string& why) {
  return Error{ErrorCode::kUnavailable, fmt::format("cannot connect to {}: {}", path, why)};
}

// The request, step by step; each step starts the next, and the io_context runs dry at the end.
class Exchange {
 public:
  Exchange(std::chrono::seconds timeout, const std::function<void(std::string_view)>& on_line,
           const OnBytes& on_bytes)
      : timeout_(timeout), on_line_(on_line), on_bytes_(on_bytes) {
    buffer_.reserve(kReadBytes);
    parser_.body_limit(
        boost::none);  // a stream may be long; what is kept of it is bounded in take_lines()
  }

  Result<HttpAnswer> run(const std::string& path, const HttpCall& call) {
    http::request<http::string_body> request{
        http::string_to_verb({call.method.data(), call.method.size()}), call.target, 11};
    request.set(http::field::host, "mariner");
    request.keep_alive(false);
    if (!call.body.empty()) {
      request.set(http::field::content_type,
                  boost::beast::string_view(call.content_type.data(), call.content_type.size()));
      request.body() = call.body;
    }
    request.prepare_payload();

    auto error = step([&](auto done) { stream_.async_connect(Unix::endpoint(path), done); });
    if (error && error.category() != boost::system::system_category()) {
      return cannot_connect(path, error.message());
    }
    if (error) return connect_error(path, error.value());
    error = step([&](auto done) {
      http::async_write(stream_, request, [done](error_code code, std::size_t) { done(code); });
    });
    // A server that refuses before it has read everything answers, too: read on.
    error = step([&](auto done) {
      http::async_read_header(stream_, buffer_, parser_,
                              [done](error_code code, std::size_t) { done(code); });
    });
    while (!error && !parser_.is_done()) {
      if (const auto taken = take(); !taken) return taken.error();
      error = step([&](auto done) {
        http::async_read_some(stream_, buffer_, parser_,
                              [done](error_code code, std::size_t) { done(code); });
      });
    }
    if (error == boost::beast::error::timeout) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("the daemon has not answered for {} s", timeout_.count())};
    }
    if (error)
      return Error{ErrorCode::kUnavailable, "the daemon's answer broke off: " + error.message()};
    if (const auto taken = take(); !taken) return taken.error();
    return HttpAnswer{static_cast<int>(parser_.get().result_int()), std::move(parser_.get().body()),
                      trailers()};
  }

 private:
  template <typename Start>
  error_code step(Start start) {
    error_code result;
    stream_.expires_after(timeout_);
    start([&result](error_code code) { result = code; });
    io_.restart();
    io_.run();
    return result;
  }

  Result<void> take() {
    auto& answer = parser_.get();
    if (on_bytes_ && answer.result() == http::status::ok && !answer.body().empty()) {
      const auto taken = on_bytes_(answer.body());
      answer.body().clear();
      return taken;
    }
    if (take_lines()) return {};
    return Error{ErrorCode::kLimit, "the daemon's answer is too long"};
  }

  [[nodiscard]] std::map<std::string, std::string> trailers() const {
    std::map<std::string, std::string> all;
    for (const auto& each : parser_.get()) {
      const std::string name(each.name_string());
      if (name.starts_with("Mariner-")) all.emplace(name, each.value());
    }
    return all;
  }

  // Gives every whole line but the last to on_line_. False: too much is left.
  bool take_lines() {
    auto& body = parser_.get().body();
    const bool stream = parser_.get()[http::field::content_type] == "application/x-ndjson";
    for (auto end = body.find('\n'); stream && end != std::string::npos && end + 1 < body.size();
         end = body.find('\n')) {
      if (on_line_) on_line_(std::string_view(body).substr(0, end));
      body.erase(0, end + 1);
    }
    return body.size() <= kAnswerBytesMax;
  }

  std::chrono::seconds timeout_;
  const std::function<void(std::string_view)>& on_line_;
  const OnBytes& on_bytes_;
  boost::asio::io_context io_{1};
  boost::beast::basic_stream<Unix> stream_{io_};
  boost::beast::flat_buffer buffer_{1u << 20};
  http::response_parser<http::string_body> parser_;
};

}  // namespace

Error connect_error(const std::string& path, int error_number) {
  if (error_number == ENOENT || error_number == ECONNREFUSED) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("marinerd is not running, or its admin socket is not {}: see "
                             "systemctl status marinerd, "
                             "mariner doctor, or give --socket",
                             path)};
  }
  if (error_number == EACCES) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("no permission to use {}: run this as root", path)};
  }
  return cannot_connect(path, std::strerror(error_number));
}

Result<HttpAnswer> http_call(const std::string& path, const HttpCall& call,
                             std::chrono::seconds timeout,
                             const std::function<void(std::string_view)>& on_line,
                             const OnBytes& on_bytes) {
  if (path.size() > 107)
    return Error{ErrorCode::kInvalidArgument,
                 "the path of the socket is longer than 107 characters"};
  return Exchange(timeout, on_line, on_bytes).run(path, call);
}

}  // namespace mariner::client
