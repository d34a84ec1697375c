#include "ifsck/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "ifsck/draft.h"
#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/fast_commit.h"
#include "ifsck/fast_replay.h"
#include "ifsck/journal_block.h"
#include "ifsck/journal_file.h"
#include "ifsck/journal_log.h"
#include "ifsck/journal_superblock.h"
#include "ifsck/mend_orphans.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr ByteRange kSuperblockPlace{1024, sizeof(ext2_super_block)};
constexpr std::size_t kChunk = 1024;     // writes whose blocks are asked for at once
constexpr JournalBlock kFastChunk = 64;  // blocks of fast commits

using SuperBytes = std::array<std::byte, sizeof(ext2_super_block)>;

// The superblock alone: whether there is a journal that is to be replayed.
Result<bool> is_needed(View& view) {
  if (view.size_bytes() < kSuperblockPlace.end()) {
    return Error{ErrorCode::kNotFound, "ext2/3/4: the volume is too small for a superblock"};
  }
  SuperBytes bytes{};
  if (const auto read = view.read(kSuperblockPlace, bytes); !read) return read.error();
  auto super = std::bit_cast<ext2_super_block>(bytes);
  if (super.s_magic != EXT2_SUPER_MAGIC) {
    return Error{ErrorCode::kNotFound, "ext2/3/4: there is no superblock"};
  }
  return ext2fs_has_feature_journal_needs_recovery(&super) && ext2fs_has_feature_journal(&super);
}

struct Place {
  View& view;
  const ExtLayout& layout;
  const JournalFile& file;
  const JournalSuperblock& super;
};

Result<void> check_target(const Place& place, const JournalLog::Write& write) {
  if (write.to < place.layout.blocks() && !place.file.has(write.to)) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("the journal, transaction {}: a block is to be written to block {}, "
                  "which {}",
                  place.super.sequence + write.transaction, write.to,
                  write.to < place.layout.blocks() ? "is one of the journal" : "does not exist")};
}

// Of each block that is written to: is it the last time?
std::vector<bool> find_last(const std::vector<JournalLog::Write>& writes) {
  std::vector<std::uint32_t> order(writes.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair{writes[i].to, i}; });
  std::vector<bool> last(writes.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    last[order[i]] = i + 1 == order.size() || writes[order[i]].to != writes[order[i + 1]].to;
  }
  return last;
}

void add_blocks(std::vector<Lbn>& blocks, const ByteRange& bytes) {
  const BlockRange range = bytes.covering_blocks();
  for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) blocks.push_back(lbn);
}

Result<void> fetch_journal(const Place& place, JournalBlock from, JournalBlock end) {
  std::vector<Lbn> blocks;
  for (; from < end; ++from) add_blocks(blocks, place.file.bytes_of(from));
  return place.view.prefetch(blocks);
}

class Writer {
 public:
  Writer(const Place& place, const JournalLog& log)
      : place_(place), log_(log), last_(find_last(log.writes)), bytes_(place.file.block_bytes()) {}

  Result<std::uint64_t> run() {
    for (std::size_t from = 0; from < log_.writes.size(); from += kChunk) {
      const std::size_t end = std::min(from + kChunk, log_.writes.size());
      if (const Result<void> done = fetch(from, end); !done) return done.error();
      for (std::size_t i = from; i < end; ++i) {
        if (const Result<void> done = write(i); !done) return done.error();
      }
    }
    return written_;
  }

 private:
  // What is only written over needs no look, unless it has a checksum that may be wrong.
  [[nodiscard]] bool is_read(std::size_t i) const {
    return last_[i] || place_.super.has_checksums();
  }

  Result<void> fetch(std::size_t from, std::size_t end) {
    std::vector<Lbn> blocks;
    for (std::size_t i = from; i < end; ++i) {
      const JournalLog::Write& each = log_.writes[i];
      if (const Result<void> good = check_target(place_, each); !good) return good;
      if (is_read(i)) add_blocks(blocks, place_.file.bytes_of(each.from));
      if (place_.layout.block_bytes() < kBlockBytes)
        add_blocks(blocks, place_.layout.bytes_of(each.to));
    }
    return place_.view.prefetch(blocks);
  }

  Result<void> write(std::size_t i) {
    if (!is_read(i)) return {};
    const JournalLog::Write& each = log_.writes[i];
    const std::uint32_t sequence = place_.super.sequence + each.transaction;
    const auto read = place_.view.read(place_.file.bytes_of(each.from), bytes_);
    if (!read) return read;
    if (!data_is_right(place_.super, sequence, each.checksum, bytes_)) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the journal, transaction {}: the block for block {} has a wrong "
                               "checksum",
                               sequence, each.to)};
    }
    if (!last_[i]) return {};
    if (each.escaped) store_be(bytes_.data(), JournalHead::kMagic);
    ++written_;
    return place_.view.write(place_.layout.bytes_of(each.to), bytes_);
  }

  const Place place_;
  const JournalLog& log_;
  const std::vector<bool> last_;
  std::vector<std::byte> bytes_;
  std::uint64_t written_ = 0;
};

// Sums of what the groups say is free, as a mount takes them.
void sum_up(const ExtVolume& volume, ext2_super_block& super) {
  std::uint64_t blocks = 0;
  std::uint32_t inodes = 0;
  for (dgrp_t group = 0; group < volume.fs()->group_desc_count; ++group) {
    blocks += ext2fs_bg_free_blocks_count(volume.fs(), group);
    inodes += ext2fs_bg_free_inodes_count(volume.fs(), group);
  }
  ext2fs_free_blocks_count_set(&super, blocks << volume.fs()->cluster_ratio_bits);
  super.s_free_inodes_count = inodes;
}

enum class Ending : std::uint8_t { kGood, kFailed, kDropped };

// The file system, with its journal replayed or given up, says that it is.
Result<void> finish(View& view, Ending ending) {
  const auto volume = ExtVolume::open(view, {});
  if (!volume) return volume.error();
  SuperBytes bytes{};
  if (const auto read = view.read(kSuperblockPlace, bytes); !read) return read;
  auto super = std::bit_cast<ext2_super_block>(bytes);
  ext2fs_clear_feature_journal_needs_recovery(&super);
  if (ending != Ending::kGood) super.s_state |= EXT2_ERROR_FS;
  if (ending == Ending::kDropped) forget_journal(super);
  sum_up(*volume, super);
  if (ext2fs_superblock_csum_set(volume->fs(), &super) != 0) {
    return Error{ErrorCode::kCorrupt, "ext2/3/4: the superblock has an unknown kind of checksum"};
  }
  return view.write(kSuperblockPlace, std::bit_cast<SuperBytes>(super));
}

Result<JournalSuperblock> read_superblock(View& view, const JournalFile& file,
                                          std::span<std::byte> bytes) {
  const auto read = view.read({file.bytes_of(0).offset, bytes.size()}, bytes);
  if (!read) return read.error();
  return JournalSuperblock::parse(bytes, file.block_bytes(), file.blocks());
}

// What was done since the last transaction, in the file system that the transactions have made.
Result<void> replay_fast(const Place& place, std::uint32_t sequence, Replay& out) {
  if (!place.super.has(JournalSuperblock::kFastCommit)) return {};
  FastCommits commits(sequence);
  std::vector<std::byte> bytes(place.file.block_bytes());
  const JournalBlock first = place.super.fast_first();
  for (JournalBlock at = first; at < place.super.blocks; ++at) {
    if ((at - first) % kFastChunk == 0) {
      const Result<void> fetched =
          fetch_journal(place, at, std::min(at + kFastChunk, place.super.blocks));
      if (!fetched) return fetched;
    }
    const auto read = place.view.read(place.file.bytes_of(at), bytes);
    if (!read) return read;
    const auto more = commits.add(bytes);
    if (!more) return more.error();
    if (!*more) break;
  }
  const std::vector<FastOperation> operations = commits.take_operations();
  out.fast_commits = commits.commits();
  out.fast_operations = operations.size();
  out.cut = out.cut || commits.cut();
  if (operations.empty()) return {};
  const auto volume = ExtVolume::open(place.view, {.writable = true});
  if (!volume) return volume.error();
  const auto layout = ExtLayout::of(*volume);
  if (!layout) return layout.error();
  return replay_fast_commits(*volume, *layout, operations);
}

Result<Replay> replay(View& view) {
  Replay out{.needed = true};
  const auto volume = ExtVolume::open(view, {});
  if (!volume) return volume.error();
  const auto layout = ExtLayout::of(*volume);
  if (!layout) return layout.error();
  const auto file = JournalFile::open(*volume, *layout);
  if (!file) return file.error();
  std::array<std::byte, JournalSuperblock::kBytes> bytes{};
  const auto super = read_superblock(view, *file, bytes);
  if (!super) return super.error();
  out.failed = super->error != 0;
  if (super->start != 0) {
    const auto log = JournalLog::read(view, *file, *super);
    if (!log) return log.error();
    const Place place{view, *layout, *file, *super};
    const auto written = Writer(place, *log).run();
    if (!written) return written.error();
    out.transactions = log->transactions;
    out.blocks = *written;
    out.revoked = log->revoked;
    out.cut = log->cut;
    out.failed = out.failed || log->damaged;
    const auto done = replay_fast(place, super->sequence + log->transactions, out);
    if (!done) return done.error();
  }
  const auto next = super->sequence + static_cast<std::uint32_t>(out.transactions) + 1;
  empty_log(bytes, next);
  const auto emptied = view.write({file->bytes_of(0).offset, bytes.size()}, bytes);
  if (!emptied) return emptied.error();
  const Result<void> done = finish(view, out.failed ? Ending::kFailed : Ending::kGood);
  if (!done) return done.error();
  const auto orphans = release_orphans(view, !out.failed);
  if (!orphans) return orphans.error();
  out.orphans_released = orphans->released;
  out.orphans_cut = orphans->cut;
  return out;
}

Result<void> give_up(View& view) {
  const auto volume = ExtVolume::open(view, {});
  if (!volume) return volume.error();
  const auto layout = ExtLayout::of(*volume);
  if (!layout) return layout.error();
  const InodeNumber number = volume->fs()->super->s_journal_inum;
  if (const auto file = JournalFile::open(*volume, *layout)) {
    std::array<std::byte, JournalSuperblock::kBytes> bytes{};
    if (const auto super = read_superblock(view, *file, bytes)) {
      empty_log(bytes, super->sequence + 1);
      const auto emptied = view.write({file->bytes_of(0).offset, bytes.size()}, bytes);
      if (!emptied) return emptied;
      return finish(view, Ending::kFailed);
    }
  } else if (file.error().code != ErrorCode::kCorrupt) {
    return file.error();
  }
  if (number != 0 && number <= layout->inodes()) {
    const std::vector<std::byte> nothing(layout->inode_bytes());
    const auto cleared = view.write(layout->inode_place(number), nothing);
    if (!cleared) return cleared;
  }
  return finish(view, Ending::kDropped);
}

}  // namespace

Result<void> give_up_journal(View& view) {
  Draft draft(view);
  if (const auto done = give_up(view); !done) return done;
  if (const auto done = release_orphans(view, false); !done) return done.error();
  draft.keep();
  return {};
}

Result<Replay> replay_journal(View& view) {
  const auto needed = is_needed(view);
  if (!needed) return needed.error();
  if (!*needed) return Replay{};
  Draft draft(view);
  const auto done = replay(view);
  if (done) draft.keep();
  return done;
}

}  // namespace mariner::ifsck
