// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace mariner::tgt {
namespace {

using std::chrono::seconds;

constexpr seconds kOpenMax{4};
constexpr int kAttentionsMax = 16;          // that may come before an answer while a unit is opened
constexpr unsigned kBlockShiftDefault = 9;  // what tgt has if it was told nothing
constexpr std::uint8_t kCompareAndWrite = 0x89;
constexpr int kTaskAborted = 0x40;
constexpr std::uint8_t kNotReady = 2;
constexpr std::uint8_t kAbortedCommand = 0xB;
constexpr std::uint16_t kCauseNotReportable = 0x0400;
constexpr std::uint16_t kReset = 0x2900;
constexpr std::uint16_t kCommandsClearedByDeviceServer = 0x2F02;

constexpr std::array<std::uint8_t, kCdbBytes> kReadCapacity16 = {0x9E, 0x10, 0, 0, 0, 0, 0,
                                                                 0,    0,    0, 0, 0, 0, 32};
constexpr std::array<std::uint8_t, kCdbBytes> kBlockLimits = {0x12, 1, 0xB0, 0, 64};
constexpr std::array<std::uint8_t, kCdbBytes> kModeSense6 = {0x1A, 0x08, 0x3F, 0, 4};

std::uint64_t big_endian(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

void store_big_endian(std::uint8_t* bytes, std::uint32_t value) {
  for (int i = 3; i >= 0; --i, value >>= 8) bytes[i] = static_cast<std::uint8_t>(value);
}

// Attentions that say that commands under way have been dropped (SAM-5 5.14.6).
bool ends_commands(std::uint16_t code) { return code >> 8 == 0x29 || code == 0x2F00; }

void set_resid(DataBuffer& buffer, std::int64_t residual) {
  const auto length = static_cast<std::int64_t>(buffer.length);
  buffer.resid = static_cast<std::int32_t>(residual);
  buffer.transfer_len = static_cast<std::uint32_t>(
      residual > 0 ? std::max<std::int64_t>(length - residual, 0) : length);
}

// Puts marinerd's answer where tgt's transport looks for it.
void copy_answer(const Command& from, ScsiCmd& to) {
  to.sense_bytes = static_cast<int>(from.sense_bytes);
  std::memcpy(to.sense, from.sense.data(), from.sense_bytes);
  if (from.direction == SCSI_XFER_READ) {
    set_resid(to.in, from.residual);
    // Without data nothing is sent in front of the status.
    if (from.status != kGood && from.residual == 0) set_resid(to.in, to.in.length);
  }
  if (from.direction == SCSI_XFER_WRITE) {
    set_resid(to.out, from.residual);
    // tgt cuts the data of a write that is too long, and knows of that alone.
    if (from.cut_bytes > 0) {
      const std::int64_t all = from.cut_bytes + std::max<std::int64_t>(from.residual, 0);
      to.out.resid = static_cast<std::int32_t>(all);
    }
  }
}

}  // namespace

Unit::Unit(ScsiLu& lu, std::string volume, const Options& options, Reactor& reactor)
    : lu_(lu),
      volume_(std::move(volume)),
      portal_(options.portal),
      session_(options, reactor, *this) {}

Unit::~Unit() {
  CommandList left = session_.abandon();
  while (Command* command = left.take()) {
    if (command->owner != nullptr) {
      end_with(*static_cast<ScsiCmd*>(command->owner), kNotReady, kCauseNotReportable);
    }
  }
  while (Command* command = held_.take()) end(*command);
  if (read_only_) lu_.read_only = 0;
  if (descriptor_ >= 0) ::close(descriptor_);
}

// -- Opening -------------------------------------------------------------------------------------

std::unique_ptr<Unit> Unit::open(ScsiLu& lu, const std::string& volume, const Options& options,
                                 Reactor& reactor, std::string& fault) {
  std::unique_ptr<Unit> unit(new Unit(lu, volume, options, reactor));
  const Clock::time_point deadline = Clock::now() + kOpenMax;
  fault = unit->session_.open(deadline);
  if (fault.empty()) fault = unit->learn(deadline);
  if (fault.empty()) fault = unit->take_block_size();
  if (!fault.empty()) {
    fault = options.target + " at " + options.portal + ": " + fault;
    return nullptr;
  }
  unit->descriptor_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (unit->descriptor_ < 0) {
    fault = std::string("a descriptor: ") + std::strerror(errno);
    return nullptr;
  }
  if (!lu.physical_block_exponent_is_set) update_lbppbe(&lu, unit->physical_block_bytes_);
  if (unit->read_only_) lu.read_only = 1;
  unit->tell_limits(lu);
  unit->session_.follow();
  return unit;
}

bool Unit::ask(Command& command, std::span<std::uint8_t> answer, Clock::time_point until) {
  command.direction = SCSI_XFER_READ;
  std::uint16_t code = 0;
  for (int i = 0; i < kAttentionsMax; ++i) {
    command.vector = {.iov_base = answer.data(), .iov_len = answer.size()};
    if (!session_.run(command, until)) return false;
    if (!is_unit_attention(command, code)) return command.status == kGood;
  }
  return false;
}

std::string Unit::learn(Clock::time_point until) {
  capacity_.cdb = kReadCapacity16;
  if (!ask(capacity_, capacity_answer_, until) || !learn_capacity()) {
    return "READ CAPACITY(16) is not answered as by a disk";
  }
  Command limits{.cdb = kBlockLimits};
  if (!ask(limits, limits_, until) || limits_[1] != 0xB0) {
    return "the page of block limits is not answered";
  }
  std::array<std::uint8_t, 4> mode{};
  Command sense{.cdb = kModeSense6};
  if (!ask(sense, mode, until)) return "MODE SENSE(6) is not answered";
  read_only_ = (mode[2] & 0x80) != 0;
  return "";
}

bool Unit::learn_capacity() {
  const std::uint64_t last = big_endian(&capacity_answer_[0], 8);
  const std::uint64_t block_bytes = big_endian(&capacity_answer_[8], 4);
  if (!std::has_single_bit(block_bytes) || block_bytes < 512 || last > (1ULL << 62) / block_bytes) {
    return false;
  }
  block_shift_ = static_cast<unsigned>(std::countr_zero(block_bytes));
  physical_block_bytes_ = static_cast<int>(block_bytes << (capacity_answer_[13] & 0x0F));
  blocks_ = last + 1;
  return true;
}

// tgt has a block size before it knows of a volume: one that it was told, or 512.
std::string Unit::take_block_size() {
  if (lu_.block_shift != kBlockShiftDefault && lu_.block_shift != block_shift_) {
    return "blocksize: expected " + std::to_string(1u << block_shift_) +
           ", which is the volume's, found " + std::to_string(1u << lu_.block_shift) +
           "; leave --blocksize out";
  }
  lu_.block_shift = block_shift_;
  store_big_endian(&lu_.mode_block_descriptor[4], 1u << block_shift_);
  return "";
}

void Unit::tell_limits(ScsiLu& lu) const {
  constexpr std::size_t kHeaderBytes = 4;
  VpdPage* page = lu.vpd[0xB0 - 0x80];
  auto* content = reinterpret_cast<std::uint8_t*>(page + 1);
  const std::size_t there =
      std::min<std::size_t>({page->bytes, static_cast<std::size_t>(big_endian(&limits_[2], 2)),
                             limits_.size() - kHeaderBytes});
  std::memset(content, 0, page->bytes);
  std::memcpy(content, &limits_[kHeaderBytes], there);
  // What tgt refuses unless it was told to provision thinly: UNMAP, and WRITE SAME with UNMAP.
  if (!lu.thin_provisioning) std::memset(content + 16, 0, 16);
  // tgt has no atomic writes to hand on; each write is atomic anyway.
  if (page->bytes > 40) std::memset(content + 40, 0, page->bytes - 40u);
}

// -- Commands ------------------------------------------------------------------------------------

bool Unit::submit(ScsiCmd& command) {
  const bool out = command.data_direction == kDataOut;
  const bool in = command.data_direction == kDataIn;
  if ((!out && !in && command.data_direction != kNoData) ||
      command.cdb_bytes > static_cast<int>(kCdbBytes)) {
    return false;
  }
  Command& one = fresh_command();
  one.cdb.fill(0);
  std::memcpy(one.cdb.data(), command.cdb, static_cast<std::size_t>(command.cdb_bytes));
  one.repeatable = one.cdb[0] != kCompareAndWrite;
  one.owner = &command;
  DataBuffer& buffer = out ? command.out : command.in;
  const bool has_data = (out || in) && buffer.length > 0;
  one.direction = !has_data ? SCSI_XFER_NONE : out ? SCSI_XFER_WRITE : SCSI_XFER_READ;
  one.vector = {.iov_base = reinterpret_cast<void*>(buffer.address),
                .iov_len = has_data ? buffer.length : 0};
  one.cut_bytes = out ? std::max<std::int32_t>(buffer.resid, 0) : 0;
  command.state |= kCommandIsAsync;
  session_.submit(one);
  return true;
}

Command& Unit::fresh_command() {
  if (free_.empty()) {
    commands_.push_back(std::make_unique<Command>());
    free_.push_back(commands_.back().get());
  }
  Command* command = free_.back();
  free_.pop_back();
  return *command;
}

void Unit::answered(Command& command) {
  if (&command == &capacity_) return refreshed();
  if (command.owner == nullptr) return;
  std::uint16_t code = 0;
  if (command.lost || command.dropped || !is_unit_attention(command, code)) return end(command);
  const auto nexus = static_cast<ScsiCmd*>(command.owner)->nexus_id;
  if (ends_commands(code)) {
    // It was not carried out either, and goes with the others; all are told when that is done.
    session_.restart("the unit was reset by another initiator");
    return session_.submit(command);
  }
  ua_sense_add_other_it_nexus(nexus, &lu_, code);
  refresh(&command);
}

// tgt notes on a command that is under way that it was aborted, and waits for its end.
bool Unit::wanted(const Command& command) const {
  return command.owner == nullptr ||
         static_cast<const ScsiCmd*>(command.owner)->management_request == nullptr;
}

void Unit::attention(std::uint16_t code) {
  if (ends_commands(code)) return session_.restart("the unit was reset by another initiator");
  ua_sense_add_other_it_nexus(0, &lu_, code);
  refresh(nullptr);
}

void Unit::end(Command& command) {
  auto& of_tgt = *static_cast<ScsiCmd*>(std::exchange(command.owner, nullptr));
  free_.push_back(&command);
  if (command.lost) return end_with(of_tgt, kAbortedCommand, kCommandsClearedByDeviceServer);
  if (command.dropped) {
    if (of_tgt.data_direction == kDataIn) set_resid(of_tgt.in, of_tgt.in.length);
    of_tgt.sense_bytes = 0;
    return target_cmd_io_done(&of_tgt, kTaskAborted);
  }
  copy_answer(command, of_tgt);
  target_cmd_io_done(&of_tgt, command.status);
}

void Unit::end_with(ScsiCmd& command, std::uint8_t key, std::uint16_t code) {
  if (command.data_direction == kDataIn) set_resid(command.in, command.in.length);
  sense_data_build(&command, key, code);
  target_cmd_io_done(&command, kCheckCondition);
}

// -- What happens to the volume ------------------------------------------------------------------

// Asks for the size again; `held` is answered then.
void Unit::refresh(Command* held) {
  if (held != nullptr) held_.append(*held);
  if (std::exchange(refreshing_, true)) {
    refresh_again_ = true;
    return;
  }
  capacity_.cdb = kReadCapacity16;
  capacity_.direction = SCSI_XFER_READ;
  capacity_.vector = {.iov_base = capacity_answer_.data(), .iov_len = capacity_answer_.size()};
  session_.submit(capacity_);
}

void Unit::refreshed() {
  if (!refreshing_) return;  // while the unit is opened
  refreshing_ = false;
  std::uint16_t code = 0;
  if (is_unit_attention(capacity_, code)) {
    if (ends_commands(code)) {
      session_.restart("the unit was reset by another initiator");
    } else {
      ua_sense_add_other_it_nexus(0, &lu_, code);
    }
    return refresh(nullptr);
  }
  const std::uint64_t before = bytes();
  const unsigned shift = block_shift_;
  if (capacity_.status == kGood && learn_capacity() && block_shift_ == shift) {
    if (bytes() != before) {
      log_warning("bs_mariner: volume %s has %llu bytes now\n", volume_.c_str(),
                  static_cast<unsigned long long>(bytes()));
    }
    lu_.size = bytes();
  } else {
    log_error("bs_mariner: volume %s: its size cannot be read (status 0x%x)\n", volume_.c_str(),
              static_cast<unsigned>(capacity_.status));
  }
  block_shift_ = shift;
  if (std::exchange(refresh_again_, false)) return refresh(nullptr);
  while (Command* command = held_.take()) end(*command);
}

void Unit::came_back() {
  const double away_s = std::chrono::duration<double>(Clock::now() - away_since_).count();
  log_warning("bs_mariner: volume %s: marinerd at %s is back after %.1f s\n", volume_.c_str(),
              portal_.c_str(), away_s);
  ua_sense_add_other_it_nexus(0, &lu_, kReset);
  refresh(nullptr);
}

void Unit::went_away(const std::string& why) {
  away_since_ = Clock::now();
  log_warning(
      "bs_mariner: volume %s: the session with marinerd at %s is lost (%s); %zu commands wait\n",
      volume_.c_str(), portal_.c_str(), why.c_str(), session_.waiting());
}

void Unit::stays_away(const std::string& why) {
  log_warning("bs_mariner: volume %s: no session with marinerd at %s yet (%s); %zu commands wait\n",
              volume_.c_str(), portal_.c_str(), why.c_str(), session_.waiting());
}

}  // namespace mariner::tgt
