// Threads that move the bytes of sockets in the event loop's place, where that has too much to do:
// they copy between the sockets and the memory that the loop names, and do TCP's work on the way.
// What the bytes mean stays the loop's business, so nothing of it is shared or locked.
//
// A socket is lent for a time. The loop asks to receive, or to send, one call of each at a time;
// a thread does it as soon as the socket can, and the loop hears of it by a post. Each thread has
// an epoll of its own, edge-triggered: to ask costs no system call but one that wakes a thread that
// sleeps, and that only where the socket is known to be ready.
//
// Everything here belongs to the Executor's thread but SocketThread::run().
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "proto/executor.h"

namespace mariner::iscsi {

class SocketThread;

[[nodiscard]] inline std::size_t bytes_of(std::span<const iovec> places) {
  std::size_t bytes = 0;
  for (const iovec& place : places) bytes += place.iov_len;
  return bytes;
}

// Hears of what was done for it, on the Executor's thread. It may ask again at once, and end loans.
class SocketClient {
 public:
  virtual ~SocketClient() = default;
  // What receive() asked for: so many bytes, 0 at the end of the stream, or none and an errno.
  virtual void receive_done(std::size_t bytes, int error_number) = 0;
  // What send() asked for: all of it, or an errno.
  virtual void send_done(int error_number) = 0;
};

// One socket's loan. Its client hears nothing of it when it is gone. Not to outlive SocketThreads.
class SocketLoan {
 public:
  // Ends the loan, with what was asked for and is not done. Waits for the system calls that are
  // under way there (at most one of each kind; none of them blocks). The socket stays open.
  ~SocketLoan();
  SocketLoan(const SocketLoan&) = delete;
  SocketLoan& operator=(const SocketLoan&) = delete;

  // Receives into `places` (at most two, not empty), in order, until there are `bytes_min` of them
  // or the stream ends; what has come by then is told, if it is more than nothing. The memory is
  // good until receive_done(). One at a time. Requires 1 <= bytes_min <= the room.
  void receive(std::span<const iovec> places, std::size_t bytes_min);
  [[nodiscard]] bool receiving() const { return receiving_; }
  // Nothing is to be received any more. False if something was already: the client will hear of
  // that, however little. Waits as the destructor does.
  [[nodiscard]] bool take_back_receive();

  // Sends all of `places`, however long that takes; their memory is good until send_done(). One at
  // a time.
  void send(std::span<const iovec> places);
  [[nodiscard]] bool sending() const { return sending_; }

 private:
  friend class SocketThread;
  SocketLoan(std::shared_ptr<SocketThread> thread, SocketClient& client, int fd, std::uint64_t id)
      : thread_(std::move(thread)), client_(client), fd_(fd), id_(id) {}

  const std::shared_ptr<SocketThread> thread_;
  SocketClient& client_;
  const int fd_;
  const std::uint64_t id_;
  bool receiving_ = false;  // asked, and not heard of
  bool sending_ = false;

  // The loop's while nothing is asked for, then the thread's until it is done.
  iovec receive_places_[2] = {};
  std::size_t receive_count_ = 0;
  std::size_t receive_min_ = 0;
  std::size_t received_ = 0;  // of what is asked for
  std::vector<iovec> send_places_;
  std::size_t send_at_ = 0;  // the first of them that is not sent whole

  // Guarded by the thread's mutex.
  bool receive_asked_ = false;  // and not done
  bool send_asked_ = false;
  bool readable_ = true;  // as far as known
  bool writable_ = true;
  bool may_have_more_ = false;  // also behind a read that filled less than its places
  bool queued_ = false;         // for the thread to look after
  bool busy_ = false;           // it does
};

class SocketThreads {
 public:
  // `count` >= 1. kIo if the system gives none of what they need.
  [[nodiscard]] static Result<std::unique_ptr<SocketThreads>> start(std::size_t count,
                                                                    Executor& executor);
  // Requires that no loan is left.
  ~SocketThreads();
  SocketThreads(const SocketThreads&) = delete;
  SocketThreads& operator=(const SocketThreads&) = delete;

  // Lends a connected socket to the thread that has the fewest. Null if the system refuses (out of
  // memory). Until the loan has ended nobody else may receive, send or wait there, nor close it.
  [[nodiscard]] std::unique_ptr<SocketLoan> lend(int fd, SocketClient& client);
  [[nodiscard]] std::size_t lent() const;

 private:
  SocketThreads() = default;

  std::vector<std::shared_ptr<SocketThread>> threads_;
};

}  // namespace mariner::iscsi
