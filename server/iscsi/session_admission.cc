// When a session's commands may begin: their turn (task_set.h), and memory for what they transfer.
#include <algorithm>
#include <cstring>
#include <utility>

#include "server/iscsi/session.h"

namespace mariner::iscsi {

using Direction = scsi::Transfer::Direction;

// Unless its turn has come, or comes when all of the PDU is there: no other can come between.
bool Session::begins_at_once(const ScsiCommand& command) const {
  if (command.immediate) return true;
  return command.cmd_sn == order_.window().exp_cmd_sn() && task_set_.would_begin(command.attribute);
}

void Session::enter(Task& task) {
  task.in_set = true;
  task.group = task_set_.enter(task.attribute);
  task.waits_its_turn = task.attribute != TaskAttribute::kHeadOfQueue;
}

// Unsolicited data comes whether or not there is room: FirstBurstLength bounds it for each command.
// It is copied when the command is admitted.
void Session::keep_unsolicited(Task& task, std::uint32_t immediate_bytes) {
  const std::uint32_t unsolicited =
      task.data_out.unsolicited_open() ? parameters().first_burst_bytes_max : immediate_bytes;
  const std::uint32_t bytes = std::min(task.data_out.wanted(), unsolicited);
  if (!setup_.budget->keep(bytes)) {
    task.refusal = Task::Refusal::kTaskSetFull;  // what comes of it is dropped
    return;
  }
  task.waiting_bytes = bytes;
  task.payload = Payload::allocate(bytes);
}

std::uint64_t Session::charge_of(const Task& task) const {
  if (task.transfer.direction == Direction::kToInitiator) {
    // An allocation length may be absurd; the device limits what it returns.
    return std::min(
        {task.transfer.bytes, std::uint64_t{task.expected_bytes}, options_.transfer_bytes_max});
  }
  return task.data_out.wanted();
}

void Session::wait_for_earlier() {
  // Each of them holds its session, and so the nexus.
  if (nexus_ == nullptr || nexus_.use_count() == 1) return;
  waits_for_earlier_ = true;
  device()->manage(scsi::TaskManagementFunction::kNexusReset, 0, nexus_, [weak = weak_from_this()] {
    const std::shared_ptr<Session> self = weak.lock();
    if (self == nullptr) return;
    self->waits_for_earlier_ = false;
    self->pump();
  });
}

bool Session::fits(const Task& task) {
  if (waits_for_earlier_ && task.transfer.is_use) return false;
  if (task.charge_bytes == 0) return true;
  const std::uint64_t used = charged_bytes_ + output_bytes();
  if (used != 0 && used + task.charge_bytes > options_.payload_bytes_max) return false;
  if (setup_.budget->fits(task.charge_bytes, task.waiting_bytes)) return true;
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

std::optional<KeptBytes> Session::keep(std::uint64_t bytes) {
  if (!setup_.budget->keep(bytes)) return std::nullopt;
  return KeptBytes(setup_.budget, bytes);
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
  if (task.waiting_bytes != 0) setup_.budget->unkeep(std::exchange(task.waiting_bytes, 0));
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

// Lets waiting tasks go on, in order, as far as those before them and memory allow.
void Session::pump() {
  // A device that answers at once would recurse as deep as the queue is long.
  if (std::exchange(pumping_, true)) return;
  do {
    admit_waiting();
  } while (wake());
  pumping_ = false;
}

void Session::admit_waiting() {
  while (!waiting_.empty()) {
    Task* const task = tasks_.get(waiting_.front());
    if (task != nullptr && !fits(*task)) break;
    waiting_.pop();
    if (task == nullptr) continue;  // aborted while it waited
    admit(*task);
    proceed(*task);
  }
}

// Looks through the dormant when another group's turn has come; false if it has not.
bool Session::wake() {
  if (dormant_.empty() || woken_ == task_set_.first()) return false;
  woken_ = task_set_.first();
  for (const TaskRef ref : std::exchange(dormant_, {})) {
    Task* const task = tasks_.get(ref);
    if (task == nullptr) continue;
    task->state = Task::State::kReceiving;
    advance(*task);  // whose turn it is not lies down again
  }
  return true;
}

}  // namespace mariner::iscsi
