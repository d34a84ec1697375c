#include "server/iscsi/session.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::iscsi {

using Direction = scsi::Transfer::Direction;

namespace {

// A LUN below 256 can be written in the peripheral device or the flat space method (SAM-5 4.7.7):
// the same unit.
bool same_lun(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kFlatSpaceBit = 0x40ull << 56;
  constexpr std::uint64_t kFirstByte = 0xffull << 56;
  const auto plain = [](std::uint64_t lun) {
    return (lun & kFirstByte) == kFlatSpaceBit ? lun & ~kFlatSpaceBit : lun;
  };
  return plain(a) == plain(b);
}

}  // namespace

Session::Session(Setup setup, const Options& options)
    : setup_(std::move(setup)),
      options_(options),
      order_(setup_.identity.cmd_sn, options.command_window),
      // Of each connection one command may be half here, and its number go to another one's.
      tasks_(options.command_window + options.immediate_commands_max +
             parameters().connections_max) {
  if (device() != nullptr) {
    nexus_ = device()->attach(
        {.initiator = {.name = setup_.identity.initiator, .isid = setup_.identity.isid},
         .target_port = setup_.identity.portal_group});
  }
}

std::uint32_t Session::attach(Attachment attachment) {
  attachment.id = ++last_attachment_;
  attachments_.push_back(attachment);
  return attachment.id;
}

void Session::detach(std::uint32_t id) {
  std::erase_if(attachments_, [&](const Attachment& one) { return one.id == id; });
  order_.drop(id);
  tasks_.for_each([&](Task& task) {
    if (task.connection == id && task.state != Task::State::kExecuting) release(task);
  });
  count_output();
  if (!attachments_.empty()) resume();
}

const Session::Attachment* Session::attachment(std::uint32_t id) const {
  for (const Attachment& one : attachments_) {
    if (one.id == id) return &one;
  }
  return nullptr;
}

SessionLink* Session::find_connection(std::uint16_t cid) const {
  for (const Attachment& one : attachments_) {
    if (one.cid == cid) return one.link;
  }
  return nullptr;
}

void Session::close(EndReason reason, const std::string& detail) {
  // Each takes the others with it.
  if (!attachments_.empty()) attachments_.front().link->close(reason, detail);
}

void Session::request_logout(std::uint16_t seconds, EndReason reason) {
  for (const Attachment& one : attachments_) one.link->request_logout(seconds, reason);
}

SessionInfo Session::info() const {
  const LoginIdentity& identity = setup_.identity;
  return {.id = setup_.id,
          .initiator = identity.initiator,
          .target = identity.target,
          .endpoints = setup_.endpoints,
          .isid = identity.isid,
          .tsih = setup_.tsih,
          .since = setup_.since,
          .discovery = identity.discovery,
          .header_digest = identity.parameters.header_digest,
          .data_digest = identity.parameters.data_digest,
          .commands = commands_,
          .bytes_read = bytes_read_,
          .bytes_written = bytes_written_,
          .outstanding = static_cast<std::uint32_t>(tasks_.size()),
          .connections = static_cast<std::uint32_t>(attachments_.size()),
          .last_io = last_io_};
}

Result<Session::Start> Session::begin_command(std::uint32_t id, const ScsiCommand& command,
                                              std::uint32_t data_bytes, MonotonicTime now) {
  const auto rejected = [&](RejectReason reason) -> Start {
    if (!command.immediate) pass_over(id, command.cmd_sn);
    return {.task = {}, .place = {}, .reject = reason};
  };
  if (tasks_.find(command.itt) != nullptr) return rejected(RejectReason::kTaskInProgress);
  if (command.immediate && immediate_tasks_ == options_.immediate_commands_max) {
    return rejected(RejectReason::kTooManyImmediateCommands);
  }
  const scsi::Transfer transfer = device()->transfer_of(command.lun, command.cdb);
  const bool data_out = transfer.direction == Direction::kToTarget && command.write;
  Task::Refusal refusal = Task::Refusal::kNone;
  if (command.attribute == TaskAttribute::kAca) refusal = Task::Refusal::kNoAca;
  if (data_out && transfer.bytes > options_.transfer_bytes_max) {
    refusal = Task::Refusal::kTooLong;
  }
  const auto wanted = static_cast<std::uint32_t>(
      data_out && refusal == Task::Refusal::kNone
          ? std::min<std::uint64_t>(transfer.bytes, command.expected_bytes)
          : 0);
  DataOutTransfer data;
  const auto begun = data.begin(command, data_bytes, wanted, parameters());
  if (!begun) return begun.error();

  Task* const task = tasks_.allocate(command.itt);
  CHECK_MSG(task != nullptr, "the window and the connections admit no more tasks than there are");
  if (transfer.is_use) last_io_ = now;
  ++commands_;
  if (command.immediate) ++immediate_tasks_;
  task->connection = id;
  task->cmd_sn = command.cmd_sn;
  task->immediate = command.immediate;
  task->read = command.read;
  task->write = command.write;
  task->refusal = refusal;
  task->attribute = command.attribute;
  task->expected_bytes = command.expected_bytes;
  task->lun = command.lun;
  task->transfer = transfer;
  task->data_out = data;
  task->cdb = command.cdb;
  task->charge_bytes = charge_of(*task);
  if (wanted > 0) {
    if (waiting_.empty() && begins_at_once(command) && fits(*task)) {
      admit(*task);
    } else if (data_bytes > 0 || data.unsolicited_open()) {
      keep_unsolicited(*task, data_bytes);
    }
  }
  const std::uint32_t kept = task->payload ? std::min(data_bytes, wanted) : 0;
  return Start{.task = task->ref,
               .place = {.payload = task->payload, .offset = 0, .length = kept},
               .reject = std::nullopt};
}

void Session::command_arrived(TaskRef ref) {
  Task* const task = tasks_.get(ref);
  if (task == nullptr) return;  // an immediate one, aborted while its data came
  if (task->immediate) return advance(*task);
  // Another connection may have brought the same number while this one's data came.
  if (window().look(task->cmd_sn) == CommandWindow::Verdict::kOutside) return release(*task);
  task->numbered = true;
  task->early = true;
  order_.deliver(task->cmd_sn, task->connection, [this, ref] {
    Task* const due = tasks_.get(ref);
    if (due == nullptr) return;
    due->early = false;
    enter(*due);
    advance(*due);
  });
}

void Session::pass_over(std::uint32_t id, std::uint32_t cmd_sn) {
  order_.deliver(cmd_sn, id, [] {});
  window().release(cmd_sn);
}

void Session::discard_command(TaskRef ref) {
  Task* const task = tasks_.get(ref);
  if (task != nullptr) release(*task);
}

Result<Session::Start> Session::begin_data_out(std::uint32_t id, const DataOut& pdu,
                                               std::uint32_t data_bytes) {
  Task* const task = tasks_.find(pdu.itt);
  // Data of an aborted task may still be under way (4.2.3.4).
  if (task == nullptr || task->connection != id || task->state == Task::State::kExecuting) {
    return Start{};
  }
  const DataOutTransfer& data = task->data_out;
  const bool solicited = pdu.ttt != kReservedTag;
  if (solicited && pdu.ttt != transfer_tag(task->ref, data.current_request())) {
    return Error{ErrorCode::kProtocol, "data-out: target transfer tag of no outstanding R2T"};
  }
  const auto use = data.check(pdu, data_bytes, solicited);
  if (!use) return use.error();
  if (*use == DataOutTransfer::Use::kDrop || task->refusal == Task::Refusal::kTaskSetFull) {
    return Start{.task = task->ref, .place = {}, .reject = std::nullopt};
  }
  const std::uint32_t usable = data.wanted() - std::min(pdu.offset, data.wanted());
  return Start{.task = task->ref,
               .place = {.payload = task->payload,
                         .offset = usable == 0 ? 0 : pdu.offset,
                         .length = std::min(data_bytes, usable)},
               .reject = std::nullopt};
}

void Session::data_out_arrived(TaskRef ref, const DataOut& pdu, std::uint32_t data_bytes,
                               bool good) {
  Task* const task = tasks_.get(ref);
  // It may have been aborted between the PDU's header and its data's end.
  if (task == nullptr || task->state != Task::State::kReceiving) return;
  task->data_out.arrived(pdu, data_bytes, pdu.ttt != kReservedTag, good);
  advance(*task);
}

// What can be done for a task now that a PDU of it is complete.
void Session::advance(Task& task) {
  if (task.early || task.data_out.unsolicited_open()) return;
  if (task.waits_its_turn && !task_set_.enabled(task.group)) {
    task.state = Task::State::kWaiting;
    dormant_.push_back(task.ref);
    return;
  }
  if (!task.admitted && !task.data_out.failed()) {
    if (task.refusal == Task::Refusal::kTaskSetFull) return execute(task);
    const bool overtakes_none = waiting_.empty() || task.charge_bytes == 0;
    if (!overtakes_none || !fits(task)) {
      task.state = Task::State::kWaiting;
      waiting_.push(task.ref);
      if (keeps_sent()) attachment(task.connection)->link->ask_for_acknowledgement();
      return;
    }
    admit(task);
  }
  proceed(task);
}

void Session::proceed(Task& task) {
  if (task.data_out.complete()) {
    execute(task);
  } else {
    task.state = Task::State::kReceiving;
    request_data(task);
  }
}

void Session::request_data(Task& task) {
  while (const auto request = task.data_out.next_request(parameters().outstanding_r2t_max)) {
    send_request(task, *request);
  }
}

void Session::send_request(const Task& task, const DataOutTransfer::Request& request) {
  const Attachment* const at = attachment(task.connection);
  CHECK(at != nullptr);
  at->sender->send(pack(R2t{.lun = task.lun,
                            .itt = task.itt,
                            .ttt = transfer_tag(task.ref, request.r2t_sn),
                            .r2t_sn = request.r2t_sn,
                            .offset = request.offset,
                            .desired_bytes = request.bytes}),
                   StatSn::kTell);
  at->link->output_ready();
}

bool Session::repeat_r2t(std::uint32_t id, const SnackRequest& snack) {
  const Task* const task = tasks_.find(snack.itt);
  if (task == nullptr || task->connection != id || task->state != Task::State::kReceiving) {
    return false;
  }
  const auto request = task->data_out.repeat_request();
  const bool asked = request && request->r2t_sn >= snack.first &&
                     (snack.count == 0 || request->r2t_sn - snack.first < snack.count);
  if (asked) send_request(*task, *request);
  return asked;
}

void Session::execute(Task& task) {
  task.state = Task::State::kExecuting;
  const TaskRef ref = task.ref;
  switch (task.refusal) {
    case Task::Refusal::kNone: break;
    case Task::Refusal::kTooLong: return complete(ref, check_condition(kInvalidFieldInCdb));
    case Task::Refusal::kNoAca: return complete(ref, check_condition(kInvalidMessage));
    case Task::Refusal::kTaskSetFull:
      return complete(ref, {.status = scsi::Status::kTaskSetFull, .sense = {}, .data_in = {}});
  }
  if (task.data_out.failed()) return complete(ref, check_condition(kDataLost));
  scsi::Command command{.lun = task.lun,
                        .cdb = task.cdb,
                        .data_out = std::move(task.payload),
                        .data_out_announced = task.write ? task.expected_bytes : 0,
                        .unit_blocks = task.transfer.unit_blocks,
                        .nexus = nexus_,
                        .tag = scsi::TaskTag{task.itt}};
  device()->execute(std::move(command),
                    [self = shared_from_this(), ref](const scsi::Response& response) {
                      self->complete(ref, response);
                    });
}

void Session::complete(TaskRef ref, const scsi::Response& response) {
  Task* const task = tasks_.get(ref);
  if (task == nullptr) return;  // buried
  const Attachment* const at = attachment(task->connection);
  if (at == nullptr || task->aborted()) {
    release(*task);
    if (!attachments_.empty()) resume();
    return;
  }
  const CommandTransfer transfer{.itt = task->itt,
                                 .read = task->read,
                                 .write = task->write,
                                 .expected_bytes = task->expected_bytes,
                                 .asked = task->transfer};
  if (response.status == scsi::Status::kGood) bytes_written_ += task->data_out.wanted();
  // First, so that the answer's MaxCmdSN offers the place again.
  release(*task);
  const std::uint32_t stat_sn = at->sender->next_stat_sn();
  bytes_read_ += send_completion(transfer, response, *at->parameters, *at->sender);
  if (at->unacknowledged != nullptr) {
    at->unacknowledged->keep({.transfer = transfer,
                              .response = response,
                              .stat_sn = stat_sn,
                              .segment_bytes_max = at->parameters->send_segment_bytes_max});
  }
  at->link->output_ready();
  count_output();
  resume();
}

bool Session::abort_task(std::uint32_t itt, std::uint64_t lun, std::uint64_t ticket) {
  Task* const task = tasks_.find(itt);
  if (task == nullptr || task->to_come() || !same_lun(task->lun, lun)) return false;
  abort(*task, ticket);
  return true;
}

void Session::abort_tasks(std::optional<std::uint64_t> lun, std::uint64_t ticket) {
  tasks_.for_each([&](Task& task) {
    // Of a command that is to come the number must come, too: it begins after the function.
    if (task.aborted() || task.to_come()) return;
    if (!lun || same_lun(task.lun, *lun)) abort(task, ticket);
  });
}

void Session::abort(Task& task, std::uint64_t ticket) {
  if (task.state != Task::State::kExecuting) return release(task);
  task.abort_ticket = ticket;
  tasks_.unlist(task);
}

void Session::bury(std::uint64_t ticket) {
  tasks_.for_each([&](Task& task) {
    if (task.abort_ticket == ticket) release(task);
  });
  resume();
}

bool Session::begin_management() {
  if (managements_ == options_.immediate_commands_max) return false;
  ++managements_;
  return true;
}

void Session::respond(std::uint32_t id, const TaskManagementResponse& response) {
  CHECK(managements_ > 0);
  --managements_;
  const Attachment* const at = attachment(id);
  if (at == nullptr) return;
  const std::uint32_t stat_sn = at->sender->next_stat_sn();
  const Bhs bhs = pack(response);
  at->sender->send(bhs, StatSn::kAdvance);
  if (at->unacknowledged != nullptr) at->unacknowledged->keep(stat_sn, bhs, {});
  at->link->output_ready();
}

void Session::release(Task& task) {
  if (task.numbered) window().release(task.cmd_sn);
  if (task.immediate) --immediate_tasks_;
  if (task.admitted) {
    charged_bytes_ -= task.charge_bytes;
    setup_.budget->change(task.charge_bytes, 0);
  } else if (task.waiting_bytes != 0) {
    setup_.budget->unkeep(task.waiting_bytes);
  }
  if (task.in_set) task_set_.leave(task.group);
  tasks_.release(task);
}

}  // namespace mariner::iscsi
