// A session: one initiator port's use of one target (RFC 7143, 4.2 and 2.2), with its commands.
//
// A command arrives as a header (begin_command), its data-out in any number of PDUs
// (begin_data_out, data_out_arrived), goes to the device with its whole payload, and its answer
// leaves through the PduSender of the connection that it came on. Every task that the device has
// keeps the session alive; once its connection is gone (detach), its answer is dropped.
//
// A session has one or several connections. Requests act in the order of their CmdSN, whichever of
// them brings them, and commands begin as their task attributes have it (task_set.h). Immediate
// commands stand outside of both orders: who sends one asks that it does not wait.
//
// What commands hold in memory is bounded (Options::payload_bytes_max): a command that does not fit
// waits in order before its memory is allocated. Reading goes on meanwhile, because the commands
// that do hold memory may be waiting for their data; the CmdSN window bounds how many can wait, and
// the initiator's budget what their unsolicited data holds: beyond it they end in TASK SET FULL.
// Memory is given to those only whose turn has come, so nobody holds it while he waits for others.
//
// Executor's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/units.h"
#include "server/iscsi/command_order.h"
#include "server/iscsi/completion.h"
#include "server/iscsi/login.h"
#include "server/iscsi/observer.h"
#include "server/iscsi/options.h"
#include "server/iscsi/payload_budget.h"
#include "server/iscsi/pdu_receiver.h"
#include "server/iscsi/pdu_sender.h"
#include "server/iscsi/ring.h"
#include "server/iscsi/task.h"
#include "server/iscsi/task_set.h"
#include "server/iscsi/unacknowledged.h"

namespace mariner::iscsi {

// What an administrator sees of a session.
struct SessionInfo {
  std::uint64_t id = 0;
  std::string initiator;
  std::string target;
  Endpoints endpoints;
  Isid isid{};
  std::uint16_t tsih = 0;
  VersionTime since;
  bool discovery = false;
  bool header_digest = false;
  bool data_digest = false;
  std::uint64_t commands = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint32_t outstanding = 0;
  std::uint32_t connections = 0;
  MonotonicTime last_io{};  // when what is stored was used last (scsi::is_use); zero: never yet
};

// The connection, as its session and the registry see it.
class SessionLink {
 public:
  virtual ~SessionLink() = default;
  // Sends what is queued and ends, and the session's other connections with it. Detaches the
  // session at once.
  virtual void close(EndReason reason, std::string detail) = 0;
  // The same, and the others go on.
  virtual void leave(EndReason reason, std::string detail) = 0;
  // Asks the initiator to log out within `seconds` (Async Message), and ends for `reason` if it has
  // not. Once: who asks again changes nothing.
  virtual void request_logout(std::uint16_t seconds, EndReason reason) = 0;
  // Something was given to the sender outside of the connection's own doing: send it soon.
  virtual void output_ready() = 0;
  // What was sent and is kept takes room: makes the initiator say what it has.
  virtual void ask_for_acknowledgement() = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  struct Setup {
    std::uint64_t id = 0;
    std::uint16_t tsih = 0;
    LoginIdentity identity;
    Endpoints endpoints;
    VersionTime since;
    std::shared_ptr<PayloadBudget> budget;  // of the initiator
  };

  Session(Setup setup, const Options& options);

  // Commands of an earlier session of the same initiator port may be under way at the device still.
  // What uses what is stored waits until they have ended (RFC 7143 6.3.5: they are terminated), so
  // that nothing of them appears behind what this session has seen. At its beginning, once the
  // earlier one is closed.
  void wait_for_earlier();

  // A connection of the session, with what is its own; all of it serves until detach().
  struct Attachment {
    std::uint32_t id = 0;  // given by attach(), never again in this session
    std::uint16_t cid = 0;
    SessionLink* link = nullptr;
    PduSender* sender = nullptr;
    const SessionParameters* parameters = nullptr;
    Unacknowledged* unacknowledged = nullptr;  // null at error recovery level 0
  };
  // Returns its id.
  std::uint32_t attach(Attachment attachment);
  // Its unanswered commands are dropped, except that those which the device has finish unheard.
  void detach(std::uint32_t id);
  [[nodiscard]] std::size_t connections() const { return attachments_.size(); }
  // The connection with this CID; null if there is none.
  [[nodiscard]] SessionLink* find_connection(std::uint16_t cid) const;
  // Ends every connection.
  void close(EndReason reason, const std::string& detail);
  // SessionLink::request_logout() of every connection.
  void request_logout(std::uint16_t seconds, EndReason reason);

  [[nodiscard]] const LoginIdentity& identity() const { return setup_.identity; }
  [[nodiscard]] std::uint64_t id() const { return setup_.id; }
  [[nodiscard]] std::uint16_t tsih() const { return setup_.tsih; }
  [[nodiscard]] SessionInfo info() const;
  [[nodiscard]] CommandOrder& order() { return order_; }
  [[nodiscard]] CommandWindow& window() { return order_.window(); }
  // What was agreed for the session; what is a connection's own is in its attachment.
  [[nodiscard]] const SessionParameters& parameters() const { return setup_.identity.parameters; }
  // A command that is missing may come later: by another connection, or because it was damaged.
  [[nodiscard]] bool gaps_may_fill() const {
    return parameters().connections_max > 1 || parameters().error_recovery_level > 0;
  }
  [[nodiscard]] scsi::TargetDevice* device() const { return setup_.identity.device.get(); }
  [[nodiscard]] const std::shared_ptr<scsi::Nexus>& nexus() const { return nexus_; }

  // Where a PDU's data goes and whom to tell when it is there. With `reject`, nothing was begun.
  struct Start {
    TaskRef task;
    Placement place;
    std::optional<RejectReason> reject;
  };
  // The header of a SCSI Command whose number, if it has one, the window does not say kOutside of,
  // on the connection `id`. kProtocol: closes the connection. A rejected command has had its
  // number.
  [[nodiscard]] Result<Start> begin_command(std::uint32_t id, const ScsiCommand& command,
                                            std::uint32_t data_bytes, MonotonicTime now);
  // All of that PDU is there: the command has come.
  void command_arrived(TaskRef task);
  // Its data was damaged: it has not come.
  void discard_command(TaskRef task);
  // The header of a Data-Out PDU on the connection `id`. Data of a task that is gone, or another
  // connection's, has no place: it is dropped.
  [[nodiscard]] Result<Start> begin_data_out(std::uint32_t id, const DataOut& pdu,
                                             std::uint32_t data_bytes);
  // All of that PDU is there, `good` unless its data was damaged on the way.
  void data_out_arrived(TaskRef task, const DataOut& pdu, std::uint32_t data_bytes, bool good);
  // The sender has more to send, by something else than the answer to a command; or less.
  void output_queued() { count_output(); }
  void output_drained() {
    count_output();
    resume();
  }
  // Room for data of a request that waits for those before it and is no command, or nothing.
  [[nodiscard]] std::optional<KeptBytes> keep(std::uint64_t bytes);
  // The request of this number has come, on the connection `id`, and does nothing. Requires that
  // the window does not say kOutside of it.
  void pass_over(std::uint32_t id, std::uint32_t cmd_sn);
  // The initiator's budget may have room again.
  void budget_freed() {
    starved_ = false;
    if (!attachments_.empty()) resume();
  }

  // Task management. A ticket names one function's victims; they answer no more. A command whose
  // PDU is not whole has not come: it is nobody's victim, and comes after the function.
  // False if no task has this tag (and LUN).
  [[nodiscard]] bool abort_task(std::uint32_t itt, std::uint64_t lun, std::uint64_t ticket);
  // All tasks, or those of one LUN.
  void abort_tasks(std::optional<std::uint64_t> lun, std::uint64_t ticket);
  // The device is done with the victims, whether or not it has answered them.
  void bury(std::uint64_t ticket);
  // True unless too many functions are under way; each begin has its respond().
  [[nodiscard]] bool begin_management();
  // Sends the answer on the connection `id`, if there still is that.
  void respond(std::uint32_t id, const TaskManagementResponse& response);
  // Sends the R2T that `itt` on the connection `id` waits for again, if its number is in the run.
  [[nodiscard]] bool repeat_r2t(std::uint32_t id, const SnackRequest& snack);

 private:
  [[nodiscard]] const Attachment* attachment(std::uint32_t id) const;
  [[nodiscard]] bool keeps_sent() const;
  [[nodiscard]] std::uint64_t charge_of(const Task& task) const;
  [[nodiscard]] bool fits(const Task& task);
  [[nodiscard]] bool begins_at_once(const ScsiCommand& command) const;
  void keep_unsolicited(Task& task, std::uint32_t immediate_bytes);
  void enter(Task& task);
  [[nodiscard]] std::uint64_t output_bytes() const;
  void count_output();
  void admit(Task& task);
  void advance(Task& task);
  void proceed(Task& task);
  void request_data(Task& task);
  void send_request(const Task& task, const DataOutTransfer::Request& request);
  void execute(Task& task);
  void complete(TaskRef ref, const scsi::Response& response);
  // What has ended may let others go on.
  void resume() {
    if (!waiting_.empty() || !dormant_.empty()) pump();
  }
  void pump();
  void admit_waiting();
  [[nodiscard]] bool wake();
  void abort(Task& task, std::uint64_t ticket);
  void release(Task& task);

  Setup setup_;
  const Options options_;  // a copy: the device may keep us past the server
  std::shared_ptr<scsi::Nexus> nexus_;
  std::vector<Attachment> attachments_;
  std::uint32_t last_attachment_ = 0;
  CommandOrder order_;
  TaskTable tasks_;
  Ring<TaskRef> waiting_;  // for memory, or for the end of an earlier session's commands
  bool waits_for_earlier_ = false;
  TaskSet task_set_;
  std::vector<TaskRef> dormant_;  // until their group's turn, in order
  TaskSet::Group woken_ = 0;      // the first group when they were last looked through
  bool pumping_ = false;
  bool starved_ = false;  // the budget is to call budget_freed()
  std::uint32_t immediate_tasks_ = 0;
  std::uint32_t managements_ = 0;           // functions under way
  std::uint64_t charged_bytes_ = 0;         // by admitted tasks
  std::uint64_t counted_output_bytes_ = 0;  // waiting to be sent, as the budget knows it
  std::uint64_t commands_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_written_ = 0;
  MonotonicTime last_io_{};
};

}  // namespace mariner::iscsi
