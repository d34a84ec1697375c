// A connection, sans I/O: the bytes of one TCP stream in, the bytes of its answers out.
//
// It is in its login, then in the full feature phase with a session, then closing: its last words
// are on their way and nothing more is read. Whatever a peer sends, the worst it gets is the end of
// its own connection. Each connection reports exactly one end to the Observer.
//
// Executor's thread. The socket's owner calls prepare()/received() when bytes can be read (or the
// one now, and the other when they have been: received_nothing() if that is given up),
// pending()/sent() when output_ready() was called or the socket can take more, and tick() every
// second or so.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/executor.h"
#include "server/iscsi/login.h"
#include "server/iscsi/observer.h"
#include "server/iscsi/pdu_receiver.h"
#include "server/iscsi/pdu_sender.h"
#include "server/iscsi/session_registry.h"
#include "server/iscsi/target_directory.h"
#include "server/iscsi/text_exchange.h"

namespace mariner::iscsi {

// The socket's owner, as the connection sees it.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  // There is something to send, or the connection is closing. Called while the core is at work:
  // take a note and act later.
  virtual void output_ready() = 0;
};

class Connection final : private PduSink, private LoginAdmission, private SessionLink {
 public:
  struct Environment {
    const Options& options;
    TargetDirectory& directory;
    SessionRegistry& registry;
    Observer& observer;
    ConnectionHost* host;  // not null
    Executor& executor;
    Endpoints endpoints;
    std::uint16_t portal_group = 1;               // of the portal that was reached
    std::vector<PortalAddress> portal_addresses;  // what SendTargets announces
  };

  explicit Connection(Environment environment);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False while nothing may be read: too much waits to be sent, or it is closing.
  [[nodiscard]] bool wants_input() const;
  // Where the next bytes go, in order, at most two places.
  [[nodiscard]] std::size_t prepare(std::span<iovec> places) { return receiver_.prepare(places); }
  // Fewer than these may as well wait for the rest.
  [[nodiscard]] std::size_t awaited_bytes() const { return receiver_.awaited_bytes(); }
  void received(std::size_t bytes);
  // None after all: prepare()'s places are not written to any more.
  void received_nothing() { receiver_.received(0, *this); }

  // What has been received and sent so far, and in how many PDUs.
  struct Traffic {
    std::uint64_t bytes = 0;
    std::uint64_t pdus = 0;
  };
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

  // What is to be sent next; returns the number of places filled.
  [[nodiscard]] std::size_t pending(std::span<iovec> places) { return sender_.pending(places); }
  void sent(std::size_t bytes);
  [[nodiscard]] bool has_output() const { return !sender_.empty(); }

  // Its end has been reported; it is done when there is no more output, or when the time for that
  // is over.
  [[nodiscard]] bool closing() const { return phase_ == Phase::kClosing; }
  [[nodiscard]] bool overdue() const;
  [[nodiscard]] bool in_login() const { return phase_ == Phase::kLogin; }

  // Time passes: login timeout, pings.
  void tick();
  // Ends the connection: the socket is at its end, or its owner wants it to be.
  void end(EndReason reason, std::string detail) { close(reason, std::move(detail)); }

 private:
  enum class Phase : std::uint8_t { kLogin, kFullFeature, kClosing };

  // PduSink
  bool wants_pdu() const override { return !output_full(); }
  bool on_header(const Bhs& bhs, std::span<const std::byte> ahs, Placement& place) override;
  bool on_pdu(bool data_digest_good) override;
  bool on_basic_header(const Bhs& bhs) override;
  void on_header_digest_error() override;
  // LoginAdmission
  std::optional<std::uint16_t> admit(const LoginIdentity& identity, std::uint16_t tsih,
                                     LoginRefusal& refusal) override;
  std::optional<SessionParameters> parameters_of(std::uint16_t tsih) const override;
  std::chrono::nanoseconds authentication_wait() const override;
  // SessionLink
  void close(EndReason reason, std::string detail) override;
  void leave(EndReason reason, std::string detail) override;
  void request_logout(std::uint16_t seconds, EndReason reason) override;
  void output_ready() override;
  void ask_for_acknowledgement() override;

  // Headers. Each returns false when the connection is closing.
  bool check_login_header();
  bool check_full_feature_header(std::span<const std::byte> ahs, Placement& place);
  bool begin_request();
  void keep_segment(Placement& place);
  [[nodiscard]] std::uint32_t useful_bytes() const;
  [[nodiscard]] bool early() const;
  // Rejects the request that is arriving, which has had its number then.
  void refuse_request(RejectReason reason);
  bool begin_scsi_command(std::span<const std::byte> ahs, Placement& place);
  bool begin_data_out(Placement& place);
  bool take(const Result<Session::Start>& start, Placement& place);
  // What a request's CmdSN makes of it.
  enum class Verdict : std::uint8_t { kGo, kIgnore, kClosing };
  Verdict check_cmd_sn(std::uint32_t cmd_sn, bool immediate);
  bool take_acknowledgement();

  // A PDU that is not a task's.
  struct Request {
    Bhs bhs{};
    CommonHeader header;
    PayloadSlice segment;  // its data
    KeptBytes kept;        // of it, where it waits for requests before it
  };

  // Whole PDUs (connection_requests.cc). Each returns false when the connection is closing.
  bool handle_pdu(bool data_digest_good);
  bool handle_damaged();
  bool handle_data_out();
  bool handle_login();
  bool handle_snack();
  bool handle_in_order();
  void handle(Request& request);
  void handle_nop_out(Request& request);
  void handle_text(const Request& request);
  void handle_task_management(const Request& request);
  void handle_logout(const Request& request);

  void enter_full_feature();
  void ping();
  // Sends a PDU with a status, which may have to be sent again.
  void send_status(const Bhs& bhs, PayloadSlice data);
  void send_reject(RejectReason reason) { send_reject(reason, arriving_.bhs); }
  void send_reject(RejectReason reason, const Bhs& bhs);
  // Always false.
  bool protocol_error(RejectReason reason, std::string detail);
  void announce_drop();
  void report(EndReason reason, std::string detail);
  [[nodiscard]] bool output_full() const;

  Environment env_;
  CommandWindow login_window_;
  PduReceiver receiver_;
  PduSender sender_;
  Phase phase_ = Phase::kLogin;
  std::unique_ptr<Login> login_;  // until the full feature phase
  std::shared_ptr<Session> session_;
  std::uint32_t attachment_ = 0;  // our number in it
  std::uint16_t cid_ = 0;
  SessionParameters parameters_;                    // the session's, and our own
  std::unique_ptr<Unacknowledged> unacknowledged_;  // null at error recovery level 0
  std::optional<TextExchange> text_;

  Request arriving_;      // or the header of what is a task's
  TaskRef task_;          // that takes its data
  bool dropped_ = false;  // ignored or rejected: its data goes nowhere
  // Who is in his login, or only discovers, has one answer at a time: he may be anybody.
  bool one_at_a_time_ = true;

  Traffic traffic_;
  MonotonicTime now_;
  MonotonicTime started_;  // the login, then the full feature phase
  MonotonicTime last_received_;
  MonotonicTime closing_since_{};
  std::optional<MonotonicTime> pinged_;
  // Since the initiator was asked to log out: until when, and why it is cut then.
  struct Leaving {
    MonotonicTime until;
    EndReason reason;
  };
  std::optional<Leaving> leaving_;
  std::uint32_t ping_ttt_ = 0;
};

}  // namespace mariner::iscsi
