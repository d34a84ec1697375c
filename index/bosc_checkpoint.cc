// Checkpoints: which place of each block holds, and what the functions know, at one moment.
// FORMAT.md section 4.
//
// Nothing is committed while one is written: the places that the last one refers to stay as they
// are until the new one is durable.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "index/bosc.h"
#include "index/bosc_parts.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::index {
namespace {

constexpr std::size_t kHeaderBytes = 32;  // frontier, addresses, functions, zeros
constexpr std::size_t kEntryBytes = 24;
constexpr std::size_t kSectionBytes = 16;  // function, zeros, bytes that follow
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kCheckpointRetryDelay{1000};

// Offsets in an entry.
constexpr std::size_t kAtAddress = 0;
constexpr std::size_t kAtFunction = 4;
constexpr std::size_t kAtVersion = 8;
constexpr std::size_t kAtPlace = 12;  // 0, 1, or 2: it was never written
constexpr std::size_t kAtFrontier = 16;

constexpr std::uint32_t kNeverWritten = 2;

// Takes bytes from the front; empty when there are too few.
std::span<const std::byte> take(std::span<const std::byte>& from, std::size_t bytes) {
  if (from.size() < bytes) return {};
  const std::span<const std::byte> taken = from.first(bytes);
  from = from.subspan(bytes);
  return taken;
}

Error given_up() { return {ErrorCode::kAborted, "the index is being closed"}; }

Error damaged(const char* what) {
  return {ErrorCode::kCorrupt, std::string("the index's checkpoint ") + what};
}

}  // namespace

Payload Bosc::pack_checkpoint(std::uint64_t frontier) {
  std::size_t bytes = kHeaderBytes + std::size_t{allocated_} * kEntryBytes;
  std::uint32_t functions = 0;
  for (const auto& [id, function] : functions_) {
    if (function.commit == nullptr) continue;
    bytes += kSectionBytes + function.commit->saved_bytes();
    ++functions;
  }
  Payload packed = Payload::allocate((bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  std::byte* to = packed.data();
  std::memset(to, 0, kHeaderBytes);
  store_le<std::uint64_t>(to, frontier);
  store_le<std::uint32_t>(to + 8, allocated_);
  store_le<std::uint32_t>(to + 12, functions);
  to += kHeaderBytes;
  for (std::uint32_t address = 0; address < states_.size(); ++address) {
    const BlockState& block = states_[address];
    if (block.function.value == 0) continue;
    store_le<std::uint32_t>(to + kAtAddress, address);
    store_le<std::uint32_t>(to + kAtFunction, block.function.value);
    store_le<std::uint32_t>(to + kAtVersion, block.version);
    store_le<std::uint32_t>(to + kAtPlace, block.on_disk ? block.place : kNeverWritten);
    store_le<std::uint64_t>(to + kAtFrontier, block.frontier);
    to += kEntryBytes;
  }
  for (const auto& [id, function] : functions_) {
    if (function.commit == nullptr) continue;
    const std::size_t length = function.commit->saved_bytes();
    std::memset(to, 0, kSectionBytes);
    store_le<std::uint32_t>(to, id);
    store_le<std::uint64_t>(to + 8, length);
    function.commit->save({to + kSectionBytes, length});
    to += kSectionBytes + length;
  }
  CHECK(to == packed.data() + bytes);
  std::memset(to, 0, packed.size() - bytes);
  return packed;
}

void Bosc::begin_checkpoint(bool ends_sweep) {
  CHECK(runs_.empty() && !checkpoint_);
  if (begin_hook_) begin_hook_();
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint_ = checkpoint;
  checkpoint->ends_sweep = ends_sweep;
  std::uint64_t frontier = used_through_;
  for (std::optional<std::uint32_t> dirty = dirty_.next(0); dirty;
       dirty = dirty_.next(*dirty + 1)) {
    frontier = std::min(frontier, states_[*dirty].first_pending - 1);
  }
  // It goes back when a block is made again from the whole log.
  checkpoint->frontier = frontier;
  checkpoint->bytes = pack_checkpoint(checkpoint->frontier);
  checkpoint->freed = std::exchange(freed_, {});
  IndexSuperblock& superblock = checkpoint->superblock;
  superblock = superblock_;
  ++superblock.generation;
  superblock.checkpoint_bytes = checkpoint->bytes.size();
  superblock.checkpoint_crc = crc32c(checkpoint->bytes.bytes());
  CHECK_MSG(superblock.checkpoint_bytes <= superblock.area_bytes,
            "a checkpoint of the index outgrew its area");
  checkpoint->superblock_bytes = Payload::allocate(kBlockBytes);
  pack_index_superblock(superblock, checkpoint->superblock_bytes.bytes());

  ++statistics_.checkpoints;
  statistics_.checkpoint_bytes += checkpoint->bytes.size();
  statistics_.bytes_written += checkpoint->bytes.size() + kBlockBytes;
  checkpoint->waiting = 1;
  const auto written = [this, checkpoint](const Result<void>& r) {
    if (!r && checkpoint->result) checkpoint->result = r;
    if (--checkpoint->waiting > 0) return;
    if (!checkpoint->result) return checkpoint_ended(checkpoint->result);
    // Everything that it refers to, and it itself, before the superblock that refers to it.
    disk_.async_flush([this](const Result<void>& flushed) {
      if (!flushed) return checkpoint_ended(flushed);
      write_superblock();
    });
  };
  const std::uint64_t area = superblock.area_offset(superblock.generation);
  const std::span<const std::byte> bytes = checkpoint->bytes.bytes();
  const std::size_t piece = std::min(kWriteBytes, gate_.piece_bytes(executor_.monotonic_time()));
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    ++checkpoint->waiting;
    ++statistics_.writes;
    const logging::ConstBytes part = bytes.subspan(at, std::min(piece, bytes.size() - at));
    gate_.pass(part.size(), executor_.monotonic_time(), [this, written, offset = area + at, part] {
      disk_.async_write(offset, {part}, logging::Durability::kVolatile,
                        [this, written, length = part.size()](const Result<void>& r) {
                          gate_.ended(length, executor_.monotonic_time());
                          written(r);
                        });
    });
  }
  executor_.post([written] { written({}); });
}

// A failed one may stand there all the same. So it is tried again until it does: only then is it
// known which checkpoint holds.
void Bosc::write_superblock() {
  ++statistics_.writes;
  disk_.async_write(superblock_offset(checkpoint_->superblock.generation),
                    {checkpoint_->superblock_bytes.bytes()}, logging::Durability::kDurable,
                    [this](const Result<void>& durable) {
                      if (durable || draining_) return checkpoint_ended(durable);
                      report({}, durable.error());
                      executor_.after(kCheckpointRetryDelay, [this, alive = alive_] {
                        if (!*alive || !checkpoint_) return;
                        if (draining_) return checkpoint_ended(given_up());
                        write_superblock();
                      });
                    });
}

void Bosc::checkpoint_ended(const Result<void>& result) {
  const std::shared_ptr<Checkpoint> checkpoint = std::exchange(checkpoint_, nullptr);
  if (checkpoint->ends_sweep) end_cleaning();
  if (!result) {
    report({}, result.error());
    if (checkpoint->ends_sweep && sweep_result_) sweep_result_ = result;
    freed_.insert(freed_.end(), checkpoint->freed.begin(), checkpoint->freed.end());
    wait_before_next(kCheckpointRetryDelay);
  } else {
    superblock_ = checkpoint->superblock;
    frontier_ = checkpoint->frontier;
    for (const BlockAddress address : checkpoint->freed) free_.insert(address.value);
    for (const BlockAddress address : std::exchange(committed_, {})) {
      states_[address.value].committed = false;
    }
    if (checkpoint_hook_) checkpoint_hook_(frontier_);
  }
  std::vector<CommitAll> ended;
  for (CommitAll& all : commit_alls_) {
    if (!checkpoint->ends_sweep) break;
    if (result && sweep_is_partial_) break;  // the next one leaves nothing out
    if (--all.sweeps_left == 0) ended.push_back(std::move(all));
  }
  std::erase_if(commit_alls_, [](const CommitAll& all) { return all.sweeps_left == 0; });
  const Result<void> outcome = sweep_result_;
  if (draining_) drain(std::move(drained_));
  for (CommitAll& all : ended) all.done(outcome);
  if (!draining_) pump_soon();
}

Result<void> Bosc::load_checkpoint() {
  if (superblock_.checkpoint_bytes == 0) return {};
  Payload bytes = Payload::allocate(superblock_.checkpoint_bytes);
  const std::uint64_t area = superblock_.area_offset(superblock_.generation);
  for (std::size_t at = 0; at < bytes.size(); at += kWriteBytes) {
    const std::size_t piece = std::min(kWriteBytes, bytes.size() - at);
    if (Result<void> r = disk_.read(area + at, bytes.bytes().subspan(at, piece)); !r) return r;
  }
  if (crc32c(bytes.bytes()) != superblock_.checkpoint_crc) return damaged("fails its checksum");
  return unpack_checkpoint(bytes.bytes());
}

Result<void> Bosc::unpack_checkpoint(std::span<const std::byte> bytes) {
  const std::span<const std::byte> header = take(bytes, kHeaderBytes);
  if (header.empty()) return damaged("is too short");
  frontier_ = load_le<std::uint64_t>(header.data());
  used_through_ = frontier_;
  allocated_ = load_le<std::uint32_t>(header.data() + 8);
  const auto functions = load_le<std::uint32_t>(header.data() + 12);
  for (std::uint32_t i = 0; i < allocated_; ++i) {
    const std::span<const std::byte> entry = take(bytes, kEntryBytes);
    if (entry.empty()) return damaged("is too short for its blocks");
    const auto address = load_le<std::uint32_t>(entry.data() + kAtAddress);
    const auto place = load_le<std::uint32_t>(entry.data() + kAtPlace);
    if (address < states_.size() || address >= superblock_.blocks || place > kNeverWritten) {
      return damaged("names a block that cannot be");
    }
    for (auto hole = static_cast<std::uint32_t>(states_.size()); hole < address; ++hole) {
      free_.insert(hole);
    }
    states_.resize(std::size_t{address} + 1);
    BlockState& block = states_.back();
    block.function = {load_le<std::uint32_t>(entry.data() + kAtFunction)};
    block.version = load_le<std::uint32_t>(entry.data() + kAtVersion);
    block.on_disk = place != kNeverWritten;
    block.place = block.on_disk ? static_cast<std::uint8_t>(place) : std::uint8_t{0};
    block.frontier = load_le<std::uint64_t>(entry.data() + kAtFrontier);
    if (block.function.value == 0) return damaged("names a block of no function");
  }
  for (std::uint32_t i = 0; i < functions; ++i) {
    const std::span<const std::byte> section = take(bytes, kSectionBytes);
    if (section.empty()) return damaged("is too short for its functions");
    const auto id = load_le<std::uint32_t>(section.data());
    if (id == 0) return damaged("has a section of no function");
    const auto length = load_le<std::uint64_t>(section.data() + 8);
    if (length > bytes.size()) return damaged("is too short for its functions");
    const std::span<const std::byte> saved = take(bytes, length);
    functions_[id].saved.assign(saved.begin(), saved.end());
  }
  return {};
}

}  // namespace mariner::index
