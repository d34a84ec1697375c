// A member of etcd that answers as a test says: any bytes, late, or never.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/endpoint.h"

namespace mariner::manager {

class FakeMember {
 public:
  struct Reply {
    std::string bytes;   // as they are
    bool close = false;  // hangs up behind them
  };
  // Asked for each request, with its body.
  using Respond = std::function<Reply(const std::string& path, const std::string& body)>;

  FakeMember(boost::asio::io_context& io, Respond respond)
      : respond_(std::move(respond)), acceptor_(io, {boost::asio::ip::address_v4::loopback(), 0}) {
    accept();
  }
  ~FakeMember() { hang_up(); }
  FakeMember(const FakeMember&) = delete;
  FakeMember& operator=(const FakeMember&) = delete;

  [[nodiscard]] Endpoint endpoint() const {
    return {.address = "127.0.0.1", .port = acceptor_.local_endpoint().port()};
  }
  [[nodiscard]] std::size_t accepted() const { return sockets_.size(); }
  // Closes every connection, and goes on listening.
  void hang_up() {
    boost::system::error_code ignored;
    for (const auto& socket : sockets_) socket->close(ignored);
  }

  static std::string http(const std::string& body, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  static std::string chunk(const std::string& text) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx", text.size());
    return std::string(size) + "\r\n" + text + "\r\n";
  }
  static std::string stream_head() {
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Socket socket) {
      if (error) return;
      sockets_.push_back(std::make_shared<Socket>(std::move(socket)));
      read(sockets_.back(), std::make_shared<std::string>());
      accept();
    });
  }
  void read(const std::shared_ptr<Socket>& socket, const std::shared_ptr<std::string>& text) {
    boost::asio::async_read_until(
        *socket, boost::asio::dynamic_buffer(*text), "\r\n\r\n",
        [this, socket, text](boost::system::error_code error, std::size_t head) {
          if (error) return;
          const auto at = text->find("Content-Length: ");
          const std::size_t body = std::strtoul(text->c_str() + at + 16, nullptr, 10);
          const std::size_t more = head + body - std::min(head + body, text->size());
          boost::asio::async_read(
              *socket, boost::asio::dynamic_buffer(*text), boost::asio::transfer_exactly(more),
              [this, socket, text, head, body](boost::system::error_code failed, std::size_t) {
                if (!failed) answer(socket, text, head, body);
              });
        });
  }
  void answer(const std::shared_ptr<Socket>& socket, const std::shared_ptr<std::string>& text,
              std::size_t head, std::size_t body) {
    const auto begin = text->find(' ') + 1;
    const auto reply = std::make_shared<Reply>(
        respond_(text->substr(begin, text->find(' ', begin) - begin), text->substr(head, body)));
    text->erase(0, head + body);
    boost::asio::async_write(*socket, boost::asio::buffer(reply->bytes),
                             [this, socket, text, reply](boost::system::error_code, std::size_t) {
                               boost::system::error_code ignored;
                               if (reply->close) {
                                 socket->close(ignored);
                               } else {
                                 read(socket, text);
                               }
                             });
  }

  Respond respond_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<std::shared_ptr<Socket>> sockets_;
};

}  // namespace mariner::manager
