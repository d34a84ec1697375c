// SPDX-License-Identifier: GPL-2.0-only
// A SCSI command on its way to marinerd and back, and lists of such.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

namespace mariner::tgt {

class Session;

inline constexpr std::size_t kCdbBytes = 16;
inline constexpr std::uint8_t kGood = 0x00;
inline constexpr std::uint8_t kCheckCondition = 0x02;

// A command on its way. Its owner keeps it, and the memory of `data`, where they are until it is
// answered: libiscsi moves the data there and keeps the pointer to `vector`.
struct Command {
  // The question.
  std::array<std::uint8_t, kCdbBytes> cdb{};
  scsi_xfer_dir direction = SCSI_XFER_NONE;
  scsi_iovec vector{};
  bool repeatable = true;
  void* owner = nullptr;  // whatever the owner wants

  std::int64_t cut_bytes = 0;  // that the initiator offered besides, and that are not sent

  // The answer. `lost`: it was sent, the session ended, and nobody knows what became of it.
  // `dropped`: nobody wanted it any more while it waited.
  bool lost = false;
  bool dropped = false;
  int status = 0;
  std::int64_t residual = 0;  // bytes; positive: fewer than asked for, negative: there were more
  std::array<std::uint8_t, 252> sense{};
  std::size_t sense_bytes = 0;

  // The session's.
  Session* session = nullptr;
  scsi_task* task = nullptr;
  Command* previous = nullptr;
  Command* next = nullptr;
};

// Whether the answer is a unit attention, and which: its code with its qualifier.
[[nodiscard]] bool is_unit_attention(const Command& command, std::uint16_t& code);

// Commands in the order in which they came.
class CommandList {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  [[nodiscard]] Command* first() const { return first_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void append(Command& command);
  void remove(Command& command);
  Command* take();                       // the first; null: there is none
  void put_before(CommandList& others);  // these go before all of `others`

 private:
  Command* first_ = nullptr;
  Command* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace mariner::tgt
