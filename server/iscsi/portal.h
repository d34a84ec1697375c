// The TCP side of the iSCSI server: listening sockets, and one socket for each Connection
// (connection_socket.h). Nothing else of this folder touches a socket.
//
// Everything runs on the thread of the io_context, which must be the Executor's, but the copying
// that socket threads do in its place while it has too much to do (socket_threads.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/error.h"
#include "proto/executor.h"
#include "proto/unique_function.h"
#include "server/iscsi/observer.h"
#include "server/iscsi/options.h"
#include "server/iscsi/session_registry.h"
#include "server/iscsi/target_directory.h"

namespace boost::asio {
class io_context;
}

namespace mariner::iscsi {

struct PortalOptions {
  Options iscsi;
  // Where to listen, also "192.0.2.1:0" (any free port).
  std::vector<PortalAddress> addresses;
  // Connections in all, and of them those that have not completed their login. Where a new one is
  // one too many, the oldest of the latter makes room: half-open connections lock nobody out.
  std::size_t connections_max = 2048;
  std::size_t login_connections_max = 256;
  // Threads that sockets are lent to while the executor's thread works for this share of the time
  // or more (LoadSwitch), if their PDUs have so many bytes on average; with 0 always, and all. No
  // threads: never.
  std::size_t socket_threads = 0;
  double socket_threads_load = 0.9;
  std::size_t lent_pdu_bytes = 16384;
};

class Portal {
 public:
  struct Environment {
    boost::asio::io_context& context;
    Executor& executor;
    TargetDirectory& directory;
    Observer& observer;
    // For how long the executor's thread has worked so far; called on it. Empty: nobody knows.
    std::function<std::chrono::nanoseconds()> busy_time = {};
  };

  // Binds and listens on every address, or none: kInvalidArgument for an address that is none, kIo
  // for one that cannot be bound. Whoever connects waits in the system's backlog until start(). All
  // of `environment` must outlive the portal.
  [[nodiscard]] static Result<std::unique_ptr<Portal>> open(PortalOptions options,
                                                            const Environment& environment);

  // Closes whatever is left. Nothing of the environment is used afterwards.
  ~Portal();
  Portal(const Portal&) = delete;
  Portal& operator=(const Portal&) = delete;

  // Begins to accept. At most once, and not after stop().
  void start();

  // The addresses that are listened on, with the ports that were chosen.
  [[nodiscard]] std::vector<std::string> addresses() const;
  [[nodiscard]] std::size_t connections() const;
  // Of them, those whose sockets are lent to threads.
  [[nodiscard]] std::size_t lent_connections() const;
  // Good for the portal's life.
  [[nodiscard]] SessionRegistry& sessions();

  // Stops listening and accepting, asks every initiator to log out, cuts who has not after
  // `seconds`, and calls `done` when no connection is left. Once; also if it was never started.
  void stop(std::uint16_t seconds, UniqueFunction<void()> done);

 private:
  class Impl;
  explicit Portal(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace mariner::iscsi
