// One accepted socket and its connection.
//
// The socket is read and written directly (recvmsg, sendmsg, never blocking), and Asio only says
// when; or it is lent to a socket thread, while the portal wants that (SocketThreads), in between
// two calls. Executor's thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/iscsi/connection.h"
#include "server/iscsi/socket_threads.h"

namespace mariner::iscsi {

class ConnectionSocket;

// Whoever has accepted it.
class SocketOwner {
 public:
  virtual ~SocketOwner() = default;
  // Has `socket` looked after (settle()) when the events at hand have been handled.
  virtual void note(std::shared_ptr<ConnectionSocket> socket) = 0;
  // Where sockets are to be lent to now; null: nowhere.
  [[nodiscard]] virtual SocketThreads* lender() const = 0;
  // Only those whose PDUs have so many bytes on average: what a thread takes off the loop is the
  // copying, and to ask it and to hear of it costs the loop as much as copying a little.
  [[nodiscard]] virtual std::size_t lent_pdu_bytes() const = 0;
};

class ConnectionSocket final : private ConnectionHost,
                               private SocketClient,
                               public std::enable_shared_from_this<ConnectionSocket> {
 public:
  // `environment` without its host; `owner` must outlive it.
  ConnectionSocket(SocketOwner& owner, boost::asio::ip::tcp::socket socket,
                   Connection::Environment environment);

  [[nodiscard]] Connection& connection() { return connection_; }

  // Begins to read.
  void start() { wait_to_read(); }
  // Sends what can be sent and arranges for the rest. False when nothing is left to do.
  [[nodiscard]] bool settle();
  // Time passes: every second or so.
  void tick();
  void close();

 private:
  [[nodiscard]] bool is_open() const { return loan_ != nullptr || socket_.is_open(); }

  // ConnectionHost
  void output_ready() override;
  // SocketClient
  void receive_done(std::size_t bytes, int error_number) override;
  void send_done(int error_number) override;

  // Looks how long PDUs are, now and then.
  void judge_pdus();
  // Lends the socket, or takes it back, as its owner wants it, if that can be done now.
  void lend_or_take_back();
  void lend(SocketThreads& threads);
  void take_back();

  void wait_to_read();
  void readable();
  bool read();
  bool discard();
  void send();
  void wait_to_write();
  void peer_closed();
  void fail(int error_number);

  SocketOwner& owner_;
  boost::asio::ip::tcp::socket socket_;
  const boost::asio::ip::tcp protocol_;
  Connection connection_;
  std::unique_ptr<SocketLoan> loan_;  // null: the socket is with the loop
  int lent_fd_ = -1;
  bool active_ = false;         // something has come, and not too long ago
  bool long_pdus_;              // worth lending for
  Connection::Traffic judged_;  // so far
  bool heard_ = false;          // since the last tick
  bool comes_back_ = false;     // lent, and wanted back
  std::size_t send_bytes_ = 0;  // that the thread sends
  // What was waited for before the last loan is no longer waited for.
  std::uint32_t generation_ = 0;
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
  bool noted_ = false;
  bool broken_ = false;     // nothing more can be sent
  bool shut_down_ = false;  // we have said that nothing more comes
  bool finished_ = false;   // so has the peer
};

}  // namespace mariner::iscsi
