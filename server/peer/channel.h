// A channel: frames over TLS over one TCP connection, on the thread of an event loop.
//
// It carries frames both ways and notices when the other end is gone; who that is, is decided above
// it (connection.h, enrolment_listener.h). What one turn of the loop sends leaves at its end, few
// records for many small frames. Whatever the other does, the worst is the channel's end, which its
// user hears of once, with the reason.
//
// One channel is one thread's, that of the Executor and of the io_context. Nothing is called from
// within a call to the channel, and nothing after close().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "proto/executor.h"
#include "proto/payload.h"
#include "server/peer/frame_receiver.h"
#include "server/peer/frame_sender.h"
#include "server/peer/tls_stream.h"

namespace boost::asio {
class io_context;
}

namespace mariner::peer {

struct ConnectedSocket;

struct ChannelOptions {
  // Frames of send() that wait, in bytes: at this bound it takes no more. At least a frame.
  std::uint64_t queued_bytes_max = 64u << 20;
  // The same for send_held(): a node that comes back is sent all that is under way of every volume
  // at once. It is memory only for as long as a node takes less than is written. At least a frame.
  std::uint64_t held_bytes_max = 1u << 30;
  // TCP connection to establish(): TLS, and what the user wants to know of the other.
  std::chrono::nanoseconds handshake_time_max = std::chrono::seconds(10);
  // From establish() on: something is sent this often, and an end from which nothing has come for
  // so long is gone. TCP would take minutes to notice.
  std::chrono::nanoseconds heartbeat_interval = std::chrono::milliseconds(500);
  std::chrono::nanoseconds silence_max = std::chrono::seconds(2);
  // An end that takes nothing for so long while something waits is gone, too, whatever it says.
  std::chrono::nanoseconds stall_max = std::chrono::seconds(10);
  // What was sent last and is not acknowledged after so long is followed by a heartbeat, after
  // twice as long by another one, and so on. When the last segment is lost, or a repetition, there
  // is nothing behind it from which TCP could tell, and it waits for its timeout, which Linux never
  // makes shorter than 200 ms; the acknowledgement of what follows tells (RFC 8985 6.2).
  std::chrono::nanoseconds probe_after = std::chrono::milliseconds(10);
};

class ChannelUser {
 public:
  virtual ~ChannelUser() = default;
  // The TLS handshake is done, and no frame has been received yet.
  virtual void secured() = 0;
  // `header` is good during the call only.
  virtual void frame(std::string_view header, Payload payload) = 0;
  // After send() has refused: half of what may be queued is free again.
  virtual void writable() = 0;
  // The channel has ended by itself; nothing follows. kUnavailable: broken, closed by the other,
  // or silent. kProtocol: the other does not speak as expected.
  virtual void closed(Error reason) = 0;
};

class Channel final : public std::enable_shared_from_this<Channel>, private FrameSink {
 public:
  struct Environment {
    boost::asio::io_context& context;
    Executor& executor;
    std::shared_ptr<const TlsContext> tls;
    ChannelOptions options;
  };

  // Begins TLS; takes the socket. Until establish() it takes frames within `bounds`. The user
  // outlives the channel or closes it.
  [[nodiscard]] static std::shared_ptr<Channel> begin(Environment environment,
                                                      ConnectedSocket socket, TlsRole role,
                                                      const FrameBounds& bounds, ChannelUser& user);
  ~Channel() override;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Queues a frame, to be sent at the end of the turn. False when it is not taken, because there
  // would be too much in the queue, or because the channel has ended. Requires what FrameSender
  // requires. From secured() on.
  [[nodiscard]] bool send(std::string header, PayloadSlice payload) {
    return send(std::move(header), std::move(payload), FrameSender::Bound::kQueue);
  }
  // The same for a payload that its owner holds, and bounds, as long as it is under way. Nothing
  // follows when it is not taken.
  [[nodiscard]] bool send_held(std::string header, PayloadSlice payload) {
    return send(std::move(header), std::move(payload), FrameSender::Bound::kOwner);
  }

  // The other is who it should be: frames of any size, heartbeats, and no end of time. Also from
  // within frame(), then from the next frame on.
  void establish();

  // Ends it. What has not been written yet is lost.
  void close();

  [[nodiscard]] std::vector<Certificate> shown() const { return tls_->shown(); }
  [[nodiscard]] const std::string& remote() const { return remote_; }
  [[nodiscard]] std::uint64_t queued_bytes() const { return sender_.queued_bytes(); }
  [[nodiscard]] bool kernel_sends() const { return tls_->kernel_sends(); }

 private:
  struct Io;  // the socket
  enum class Phase : std::uint8_t { kTls, kSecured, kEstablished, kClosed };

  Channel(Environment environment, ConnectedSocket socket, const FrameBounds& bounds,
          ChannelUser& user);
  void start(TlsRole role);
  bool send(std::string header, PayloadSlice payload, FrameSender::Bound bound);

  // FrameSink
  bool on_frame(std::string_view header, Payload payload) override;
  void on_bad_frame(Error error) override;

  void shake_hands();
  void readable();
  // One read. False when there is nothing more for now, or the channel has ended.
  bool read_once();
  void schedule_flush();
  void flush();
  void wait_to_read();
  void wait_to_write();
  // Waits for what TLS needs next; ends the channel at an end. False unless it is done.
  bool proceed(const Result<TlsStream::Outcome>& outcome);
  void tick();
  void check_silence();
  // Looks, `wait` from now, whether what was sent last has arrived.
  void probe_later(std::chrono::nanoseconds wait);
  void probe();
  void fail(Error reason);
  void shut();
  [[nodiscard]] std::chrono::nanoseconds now() const { return env_.executor.monotonic_time(); }

  Environment env_;
  std::unique_ptr<Io> io_;
  std::string remote_;
  std::optional<TlsStream> tls_;
  FrameReceiver receiver_;
  FrameSender sender_;
  ChannelUser* user_;
  Phase phase_ = Phase::kTls;
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
  bool flush_scheduled_ = false;
  bool read_posted_ = false;
  bool refused_ = false;  // send() has refused; writable() is owed
  std::chrono::nanoseconds started_;
  std::chrono::nanoseconds last_received_;
  std::chrono::nanoseconds last_sent_;
  bool probe_waits_ = false;
  std::chrono::nanoseconds probe_interval_{0};
};

}  // namespace mariner::peer
