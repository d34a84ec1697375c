// One client of an HttpServer: reads a request, has it handled, writes the answer, and so on.
//
// Heavy (Boost.Beast): only the sources of the server include this file.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>

#include "server/web/http_message.h"
#include "server/web/http_server.h"

namespace mariner::web {

// What a connection needs of its server. Outlives every connection (shared).
struct HttpService {
  HttpLimits limits;
  HttpHandler handler;  // empty once the server has stopped
  std::size_t connections = 0;
};

// Kept alive by its own pending operations and by the reply that is outstanding.
class HttpConnection final : public HttpChannel,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;

  HttpConnection(boost::asio::generic::stream_protocol::socket socket,
                 std::shared_ptr<HttpService> service);
  ~HttpConnection() override;

  void start() { read_request(); }
  void close();

  void progress(std::string line) override;
  void send(HttpResponse response) override;
  void on_gone(UniqueFunction<void()> gone) override;
  void write(std::string bytes, UniqueFunction<void()> taken) override;
  void end(HttpTrailers trailers) override;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;

  void read_request();
  void request_read(boost::beast::error_code error);
  void refuse(boost::beast::error_code error);
  void write_response(HttpResponse response);
  void write_slices(std::vector<PayloadSlice> slices);
  void begin_stream(std::string_view content_type, UniqueFunction<void()> begun);
  void write_lines();
  void write_bytes();
  void write_trailers();
  [[nodiscard]] bool has_hung_up();
  void end_stream();
  void answered(boost::beast::error_code error);

  std::shared_ptr<HttpService> service_;
  Stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;  // anew for each request
  std::optional<Response> response_;
  std::string head_and_body_;         // in front of slices_
  std::vector<PayloadSlice> slices_;  // being written
  std::shared_ptr<const void> keeps_;
  const pid_t peer_;
  bool head_ = false;  // the request wants no body
  bool keep_alive_ = false;

  // A streamed answer.
  std::optional<boost::beast::http::response_serializer<boost::beast::http::string_body>>
      serializer_;
  bool streaming_ = false;
  bool writing_ = false;
  std::optional<std::string> pending_line_;  // the newest, while an older one is being written
  std::optional<std::string> last_line_;
  std::string line_;  // being written

  // ... of bytes.
  bool bytes_ = false;
  UniqueFunction<void()> taken_;
  UniqueFunction<void()> gone_;
  boost::beast::http::fields trailers_;
};

}  // namespace mariner::web
