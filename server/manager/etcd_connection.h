// One connection to a member of etcd: HTTP/1.1, one request after another, or one watch.
//
// Heavy (Boost.Beast): only the sources of the store include this file. Owner's thread only. Kept
// alive by its own pending operations; what it was given as completions is dropped by close().
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "proto/unique_function.h"
#include "server/manager/etcd_json.h"

namespace mariner::manager {

struct EtcdAnswer {
  unsigned status = 0;  // of HTTP
  std::string body;
};

// How an exchange has ended. The error is kUnavailable (connection, time) or kProtocol (no HTTP, or
// beyond a bound).
struct EtcdExchange {
  bool sent = false;  // a byte of the request may have reached the member
  Result<EtcdAnswer> answer;
};

class EtcdConnection final : public std::enable_shared_from_this<EtcdConnection> {
 public:
  using Ended = UniqueFunction<void(EtcdExchange)>;
  // One line, without its end. False: enough.
  using TakeLine = UniqueFunction<bool(std::string_view line)>;

  EtcdConnection(boost::asio::io_context& io, Endpoint endpoint);
  ~EtcdConnection() = default;
  EtcdConnection(const EtcdConnection&) = delete;
  EtcdConnection& operator=(const EtcdConnection&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

  // Whether another exchange may begin: none is under way, and the member has not hung up.
  [[nodiscard]] bool reusable();

  struct Patience {
    std::chrono::milliseconds connect;     // where it is not connected
    std::chrono::milliseconds answer;      // from then on; of a stream, until the answer begins
    std::chrono::milliseconds silence{0};  // of a stream: between two pieces of it
  };
  // Connects if it is not connected, sends, and reads the whole answer. `ended` comes later, once.
  void exchange(EtcdRequest request, Patience patience, Ended ended);

  // The same for an answer that goes on and on: each line goes to `take`. Ends with what is left
  // of it when the member ends it, with an error when the connection breaks or nothing has come for
  // `silence`. An answer with a status other than 200 is gathered and given at the end.
  void stream(EtcdRequest request, Patience patience, TakeLine take, Ended ended);

  // No completion is called any more, except from within one that is running. Nothing else is asked
  // of a closed connection, nor of one whose exchange has failed.
  void close();

 private:
  using error_code = boost::system::error_code;

  void begin(EtcdRequest request, Patience patience, Ended ended);
  void connect();
  void write();
  void read_header();
  void read_body();
  void read_piece();
  void finish();
  void fail(ErrorCode code, std::string_view what, const error_code& error);
  void end(Result<EtcdAnswer> answer);
  bool take_lines();

  Endpoint endpoint_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  std::optional<boost::beast::http::response_parser<boost::beast::http::string_body>> parser_;
  TakeLine take_;
  Patience patience_{};
  std::size_t searched_ = 0;  // of the body: no end of a line before here
  Ended ended_;               // set while an exchange is under way
  bool sent_ = false;
  bool connected_ = false;
};

}  // namespace mariner::manager
