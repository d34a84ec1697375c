// A task: one SCSI command of a session from its command PDU to its answer (RFC 7143, 2.2), and the
// fixed table that a session's tasks live in.
//
// A task is named by a TaskRef wherever it may be gone when it is next looked up: completions of
// the device, PDUs under way, target transfer tags. A slot's generation tells its tenants apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "proto/payload.h"
#include "server/iscsi/data_out.h"
#include "server/iscsi/task_set.h"
#include "server/scsi/target_device.h"

namespace mariner::iscsi {

struct TaskRef {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;  // 0: no task
};

struct Task {
  enum class State : std::uint8_t {
    kFree,
    kReceiving,  // its data-out is arriving
    kWaiting,    // for those before it or for memory, before its data-out is solicited or it is
                 // executed
    kExecuting,  // the device has it
  };

  State state = State::kFree;
  bool immediate = false;
  bool read = false;
  bool write = false;
  bool admitted = false;        // `charge_bytes` are reserved for it
  bool numbered = false;        // its CmdSN has a place in the window
  bool early = false;           // a command before it has not come yet
  bool in_set = false;          // it has a place in the task set, in `group`
  bool waits_its_turn = false;  // ... and begins no earlier than its group
  // Why it never reaches the device.
  enum class Refusal : std::uint8_t {
    kNone,
    kTooLong,     // beyond transfer_bytes_max
    kNoAca,       // of the ACA attribute, which needs a condition that there never is
    kTaskSetFull  // no room for the unsolicited data that it would wait with
  };
  Refusal refusal = Refusal::kNone;
  TaskAttribute attribute = TaskAttribute::kSimple;
  std::uint64_t abort_ticket = 0;  // the task management function that ended it; 0: none
  std::uint32_t itt = 0;
  std::uint32_t cmd_sn = 0;
  std::uint32_t connection = 0;      // that it came on, and is answered on (4.2.2.1)
  std::uint32_t expected_bytes = 0;  // Expected Data Transfer Length
  std::uint64_t lun = 0;
  std::uint64_t charge_bytes = 0;
  std::uint32_t waiting_bytes = 0;  // for unsolicited data, before it is admitted
  TaskSet::Group group = 0;
  scsi::Transfer transfer;
  DataOutTransfer data_out;
  Payload payload;
  std::array<std::uint8_t, 16> cdb{};

  TaskRef ref;          // kept by TaskTable
  bool listed = false;  // found by its ITT; kept by TaskTable

  [[nodiscard]] bool aborted() const { return abort_ticket != 0; }
  // Its command PDU is not whole: a command that has a number has not come before that has.
  [[nodiscard]] bool to_come() const { return !immediate && !numbered; }
};

inline constexpr std::uint32_t kTaskIndexBits = 10;
inline constexpr std::size_t kTasksMax = (1u << kTaskIndexBits) - 1;

// The target transfer tag of a task's R2T: different for all that are outstanding at one time, and
// never kReservedTag. A Data-Out PDU carries it back.
[[nodiscard]] std::uint32_t transfer_tag(TaskRef task, std::uint32_t r2t_sn);

class TaskTable {
 public:
  // 1 <= capacity <= kTasksMax.
  explicit TaskTable(std::size_t capacity);

  // A cleared task, listed under `itt`; null when the table is full. The pointer is good until
  // release().
  [[nodiscard]] Task* allocate(std::uint32_t itt);

  [[nodiscard]] Task* find(std::uint32_t itt);
  // Null if that task is gone.
  [[nodiscard]] Task* get(TaskRef ref);
  // `itt`'s task no longer answers to its tag, which the initiator may use again.
  void unlist(Task& task);
  // Drops what the task holds and frees its slot.
  void release(Task& task);

  [[nodiscard]] std::size_t size() const { return used_; }

  // Calls `visit(Task&)` for each task; it may release the task that it is given.
  template <typename Visit>
  void for_each(Visit visit) {
    for (const auto& chunk : chunks_) {
      if (chunk == nullptr) continue;
      for (Task& task : *chunk) {
        if (task.state != Task::State::kFree) visit(task);
      }
    }
  }

 private:
  static constexpr std::uint32_t kNoSlot = 0xffffffff;

  // Slots come in chunks that stay where they are, made when one of them is first used: of many
  // sessions most are idle or use a few places of their window.
  static constexpr std::uint32_t kChunkSlots = 8;
  using Chunk = std::array<Task, kChunkSlots>;

  [[nodiscard]] Task& slot(std::uint32_t index);
  [[nodiscard]] std::size_t home_of(std::uint32_t itt) const;
  [[nodiscard]] std::size_t bucket_of(std::uint32_t itt);  // where it is or would be

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> buckets_;  // open addressing: slot index or kNoSlot
  std::size_t used_ = 0;
};

}  // namespace mariner::iscsi
