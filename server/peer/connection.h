// A connection between two nodes that know who the other is: a channel behind mutual TLS and
// hellos.
//
// Thread and callbacks as channel.h says: the Executor's, never from within a call to the
// connection. A connection may be destroyed in any callback; that closes it, and nothing follows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "proto/executor.h"
#include "proto/payload.h"
#include "proto/unique_function.h"
#include "server/peer/channel.h"
#include "server/peer/node_name.h"
#include "server/peer/tls_context.h"

namespace mariner::peer {

class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  // A frame of the other node. `header` is good during the call only; the payload has exactly the
  // bytes that were sent, in memory aligned to 4 KiB, and is null when there were none. Frames come
  // whole, in order, each once, up to the end of the connection; of those on their way then, none.
  virtual void received(std::string_view header, Payload payload) = 0;
  // After send() has refused: there is room again.
  virtual void writable() = 0;
  // The connection has ended, for this reason. Once; nothing follows.
  virtual void closed(const Error& reason) = 0;
};

class Connection final : private ChannelUser {
 public:
  using Environment = Channel::Environment;  // with TlsContext::for_peers()
  // How the handshake has ended. Once, unless the connection was destroyed before. If it was good,
  // whoever is called observes the connection before returning, or destroys it.
  using Established = UniqueFunction<void(Result<void>)>;

  // On a socket that was dialed to reach `node`, or accepted from whoever it is.
  [[nodiscard]] static std::unique_ptr<Connection> dialed(const Environment& environment,
                                                          ConnectedSocket socket, std::string node,
                                                          Established established);
  [[nodiscard]] static std::unique_ptr<Connection> accepted(const Environment& environment,
                                                            ConnectedSocket socket,
                                                            Established established);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // From now on. `observer` outlives the connection.
  void observe(ConnectionObserver& observer) { observer_ = &observer; }

  // Sends a frame: `header` has 1 byte to 64 KiB, the payload at most kFramePayloadBytesMax; it is
  // kept until it is sent, and not copied if it is large. False, and nothing is sent, when more of
  // such would wait than ChannelOptions::queued_bytes_max (writable() follows when half of that is
  // free), or when the connection has ended. True promises nothing but the order.
  [[nodiscard]] bool send(std::string header, PayloadSlice payload) {
    return channel_->send(std::move(header), std::move(payload));
  }
  // The same for a payload that its owner bounds: up to ChannelOptions::held_bytes_max of such may
  // wait, and writable() does not follow.
  [[nodiscard]] bool send_held(std::string header, PayloadSlice payload) {
    return channel_->send_held(std::move(header), std::move(payload));
  }

  // Once it is established.
  [[nodiscard]] const NodeName& peer() const { return peer_; }
  [[nodiscard]] const std::string& remote() const { return channel_->remote(); }
  [[nodiscard]] std::uint64_t queued_bytes() const { return channel_->queued_bytes(); }
  // Whether the kernel encrypts what is sent.
  [[nodiscard]] bool kernel_sends() const { return channel_->kernel_sends(); }

 private:
  Connection(const Environment& environment, ConnectedSocket socket, TlsRole role, std::string node,
             Established established);

  // ChannelUser
  void secured() override;
  void frame(std::string_view header, Payload payload) override;
  void writable() override;
  void closed(Error reason) override;

  void take_hello(std::string_view header);

  const NodeName own_;
  const std::string expected_;
  NodeName peer_;
  Established established_;  // null: it is
  ConnectionObserver* observer_ = nullptr;
  std::shared_ptr<Channel> channel_;
};

}  // namespace mariner::peer
