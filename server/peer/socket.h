// A TCP socket that is connected: what listeners and dialers hand on, once. Heavy (Boost.Asio):
// only sources include this file.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace mariner::peer {

struct ConnectedSocket {
  boost::asio::ip::tcp::socket socket;
  std::string remote;  // "192.0.2.1:51234", "[2001:db8::1]:51234"
};

}  // namespace mariner::peer
