#include "server/iscsi/session.h"

#include <algorithm>
#include <cstring>
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
      tasks_(options.command_window + options.immediate_commands_max) {
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
  if (!attachments_.empty() && !waiting_.empty()) pump();
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
    if (!command.immediate) {
      order_.deliver(command.cmd_sn, id, [] {});
      window().release(command.cmd_sn);
    }
    return {.task = {}, .place = {}, .reject = reason};
  };
  if (tasks_.find(command.itt) != nullptr) return rejected(RejectReason::kTaskInProgress);
  if (command.immediate && immediate_tasks_ == options_.immediate_commands_max) {
    return rejected(RejectReason::kTooManyImmediateCommands);
  }
  const scsi::Transfer transfer = device()->transfer_of(command.lun, command.cdb);
  const bool data_out = transfer.direction == Direction::kToTarget && command.write;
  const bool too_long = data_out && transfer.bytes > options_.transfer_bytes_max;
  const auto wanted = static_cast<std::uint32_t>(
      data_out && !too_long ? std::min<std::uint64_t>(transfer.bytes, command.expected_bytes) : 0);
  DataOutTransfer data;
  const auto begun = data.begin(command, data_bytes, wanted, parameters());
  if (!begun) return begun.error();

  Task* const task = tasks_.allocate(command.itt);
  CHECK_MSG(task != nullptr, "the window admits no more tasks than the table has");
  last_io_ = now;
  ++commands_;
  if (command.immediate) ++immediate_tasks_;
  task->connection = id;
  task->cmd_sn = command.cmd_sn;
  task->immediate = command.immediate;
  task->read = command.read;
  task->write = command.write;
  task->too_long = too_long;
  task->expected_bytes = command.expected_bytes;
  task->lun = command.lun;
  task->transfer = transfer;
  task->data_out = data;
  task->cdb = command.cdb;
  task->charge_bytes = charge_of(*task);
  if (wanted > 0) {
    if (fits(task->charge_bytes) && waiting_.empty()) {
      admit(*task);
    } else if (data_bytes > 0 || data.unsolicited_open()) {
      // Unsolicited data comes whether or not there is room: the window and FirstBurstLength bound
      // it. It is copied when the command is admitted.
      task->payload = Payload::allocate(std::min(wanted, parameters().first_burst_bytes_max));
    }
  }
  return Start{
      .task = task->ref,
      .place = {.payload = task->payload, .offset = 0, .length = std::min(data_bytes, wanted)},
      .reject = std::nullopt};
}

void Session::command_arrived(TaskRef ref) {
  Task* const task = tasks_.get(ref);
  if (task == nullptr) return;
  if (task->immediate) return advance(*task);
  // Another connection may have brought the same number while this one's data came.
  if (window().look(task->cmd_sn) == CommandWindow::Verdict::kOutside) return release(*task);
  task->numbered = true;
  task->early = true;
  order_.deliver(task->cmd_sn, task->connection, [this, ref] {
    Task* const due = tasks_.get(ref);
    if (due == nullptr) return;
    due->early = false;
    advance(*due);
  });
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
  if (*use == DataOutTransfer::Use::kDrop) {
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

std::uint64_t Session::charge_of(const Task& task) const {
  if (task.transfer.direction == Direction::kToInitiator) {
    // An allocation length may be absurd; the device limits what it returns.
    return std::min(
        {task.transfer.bytes, std::uint64_t{task.expected_bytes}, options_.transfer_bytes_max});
  }
  return task.data_out.wanted();
}

bool Session::fits(std::uint64_t charge_bytes) {
  if (charge_bytes == 0) return true;
  const std::uint64_t used = charged_bytes_ + output_bytes();
  if (used != 0 && used + charge_bytes > options_.payload_bytes_max) return false;
  if (setup_.budget->fits(charge_bytes)) return true;
  if (!std::exchange(starved_, true)) setup_.budget->wait(weak_from_this());
  return false;
}

std::uint64_t Session::output_bytes() const {
  std::uint64_t bytes = 0;
  for (const Attachment& one : attachments_) {
    bytes += one.sender->queued_bytes();
    if (one.unacknowledged != nullptr) bytes += one.unacknowledged->bytes();
  }
  return bytes;
}

void Session::count_output() {
  const std::uint64_t bytes = output_bytes();
  setup_.budget->change(std::exchange(counted_output_bytes_, bytes), bytes);
}

// True if answers are kept until they are acknowledged, and some are.
bool Session::keeps_sent() const {
  return std::any_of(attachments_.begin(), attachments_.end(), [](const Attachment& one) {
    return one.unacknowledged != nullptr && one.unacknowledged->bytes() > 0;
  });
}

void Session::admit(Task& task) {
  task.admitted = true;
  charged_bytes_ += task.charge_bytes;
  setup_.budget->change(0, task.charge_bytes);
  const std::uint32_t wanted = task.data_out.wanted();
  if (wanted == 0 || task.payload.size() == wanted) return;
  Payload whole = Payload::allocate(wanted);
  if (task.payload) {
    const std::uint32_t received = std::min(task.data_out.received(), wanted);
    std::memcpy(whole.data(), task.payload.data(), received);
    // The same bytes at the same place.
    for (std::size_t i = 0; i < received / kBlockBytes; ++i) {
      if (const auto crc = task.payload.block_crc(i)) whole.set_block_crc(i, *crc);
    }
  }
  task.payload = std::move(whole);
}

// What can be done for a task now that a PDU of it is complete.
void Session::advance(Task& task) {
  if (task.early || task.data_out.unsolicited_open()) return;
  if (!task.admitted && !task.data_out.failed()) {
    const bool overtakes_none = waiting_.empty() || task.charge_bytes == 0;
    if (!overtakes_none || !fits(task.charge_bytes)) {
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
  if (task.too_long) return complete(ref, check_condition(kInvalidFieldInCdb));
  if (task.data_out.failed()) return complete(ref, check_condition(kDataLost));
  scsi::Command command{.lun = task.lun,
                        .cdb = task.cdb,
                        .data_out = std::move(task.payload),
                        .data_out_announced = task.write ? task.expected_bytes : 0,
                        .unit_blocks = task.transfer.unit_blocks,
                        .nexus = nexus_};
  device()->execute(std::move(command),
                    [self = shared_from_this(), ref](const scsi::Response& response) {
                      self->complete(ref, response);
                    });
}

void Session::complete(TaskRef ref, const scsi::Response& response) {
  Task* const task = tasks_.get(ref);
  if (task == nullptr) return;  // buried
  const Attachment* const at = attachment(task->connection);
  if (at == nullptr || task->aborted()) return release(*task);
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
  if (!waiting_.empty()) pump();
}

// Lets waiting tasks go on, in order, as far as memory allows.
void Session::pump() {
  // A device that answers at once would recurse as deep as the queue is long.
  if (std::exchange(pumping_, true)) return;
  while (!waiting_.empty()) {
    Task* const task = tasks_.get(waiting_.front());
    if (task != nullptr && !fits(task->charge_bytes)) break;
    waiting_.pop();
    if (task == nullptr) continue;  // aborted while it waited
    admit(*task);
    proceed(*task);
  }
  pumping_ = false;
}

bool Session::abort_task(std::uint32_t itt, std::uint64_t lun, std::uint64_t ticket) {
  Task* const task = tasks_.find(itt);
  if (task == nullptr || !same_lun(task->lun, lun)) return false;
  abort(*task, ticket);
  return true;
}

void Session::abort_tasks(std::optional<std::uint64_t> lun, std::uint64_t ticket) {
  tasks_.for_each([&](Task& task) {
    if (!task.aborted() && (!lun || same_lun(task.lun, *lun))) abort(task, ticket);
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
  if (!waiting_.empty()) pump();
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
  }
  tasks_.release(task);
}

}  // namespace mariner::iscsi
