// Histories of a file system's journal, made at random: transactions, checkpoints, crashes, and
// writes that come in another order, late, twice, damaged, or not at all.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/write_trace.h"
#include "tests/ifsck/journal_twin.h"
#include "tests/ifsck/made_journal.h"

namespace mariner::uvfs {

using ifsck::FsBlock;
using ifsck::JournalBlock;
using ifsck::JournalHead;
using ifsck::MadeJournal;
using Super = ifsck::JournalSuperblock;

class MadeJournalHistory {
 public:
  struct Options {
    std::string image;  // as of mke2fs
    MadeJournal::Options journal;
    // All as a kernel does it on a disk that keeps the order of writes; if not, now and then.
    bool calm = false;
    std::size_t copies_max = 8;  // of a transaction
  };

  MadeJournalHistory(const Options& options, std::uint64_t seed, std::size_t steps = 0)
      : options_(options),
        random_(seed),
        image_(ifsck::JournalImage::of(options.image)),
        base_(ifsck::TracePast::open(image_.file("image"), image_.file("trace")).value()),
        made_(base_, {}, made_overlay_),
        disk_(base_, {}, disk_overlay_),
        trace_(ifsck::TraceWriter::create(folder_.file("trace"), ifsck::JournalImage::kBytes)
                   .value()) {
    begin_log(options.journal.sequence, options.journal.start);
    choose_targets();
    write_to_disk(kSuperblock);
    write_superblock();
    if (steps > 0) run(steps);
  }
  MadeJournalHistory(const MadeJournalHistory&) = delete;
  MadeJournalHistory& operator=(const MadeJournalHistory&) = delete;

  // Some more of it.
  void run(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      one_in(options_.calm ? 6 : 3) ? something_else() : transaction();
    }
    // What the file system is like in the end can be read.
    write_to_disk(kSuperblock);
    write_superblock();
  }
  // Keeps the trace's file.
  [[nodiscard]] ifsck::TracePast past() const {
    return ifsck::TracePast::open(image_.file("image"), folder_.file("trace")).value();
  }
  // Blocks that transactions write.
  [[nodiscard]] const std::vector<Lbn>& blocks() const { return blocks_; }
  [[nodiscard]] SequenceNumber last() const { return last_; }
  [[nodiscard]] const std::vector<FsBlock>& targets() const { return targets_; }
  [[nodiscard]] std::uint32_t transactions() const { return transactions_; }
  [[nodiscard]] std::uint64_t journal_writes() const { return journal_writes_; }
  [[nodiscard]] MadeJournal& journal() { return *journal_; }

  void transaction() {
    const std::size_t copies = 1 + random_() % options_.copies_max;
    for (std::size_t i = 0; i < copies; ++i) {
      journal_->write(targets_[random_() % targets_.size()], some_bytes());
    }
    std::size_t revoked = 0;
    for (; options_.journal.version == 2 && one_in(3) && revoked < 3; ++revoked) {
      journal_->revoke(targets_[random_() % targets_.size()]);
    }
    if (!options_.calm && one_in(40)) {
      journal_->write(one_in(2) ? journal_->layout().blocks() + random_() % 9
                                : journal_->file().bytes_of(7).offset / block_bytes(),
                      some_bytes());
    }
    if (options_.calm || !one_in(20)) make_room(copies + 2 + (revoked > 0 ? 1 : 0) + copies / 50);
    const std::size_t before = journal_->written().size();
    const JournalBlock start = journal_->next();
    const std::uint32_t sequence = journal_->sequence();
    const bool whole = options_.calm || !one_in(12);
    time_s_ += random_() % 3;
    journal_->commit(!options_.calm && one_in(4) ? time_s_ - 5 : time_s_, whole);
    std::vector<JournalBlock> written;
    for (std::size_t i = before; i < journal_->written().size(); ++i) {
      written.push_back(journal_->written()[i].second);
    }
    if (whole) log_.push_back({start, sequence, static_cast<JournalBlock>(written.size())});
    ++transactions_;
    write_transaction(std::move(written));
    if (!whole && one_in(2)) crash();
  }

  // The log begins later: all before it has reached its place. False: there is nothing before it.
  bool move_tail() {
    if (log_.empty()) return false;
    for (std::size_t count = 1 + random_() % log_.size(); count > 0; --count) log_.pop_front();
    if (options_.calm || one_in(2)) checkpoint();
    const bool all = log_.empty();
    tail_ = all ? Tail{journal_->next(), journal_->sequence()}
                : Tail{log_.front().start, log_.front().sequence};
    put_tail();
    write_superblock();
    return true;
  }

 private:
  static constexpr ByteRange kSuperblock{1024, 1024};
  struct Tail {
    JournalBlock start = 0;
    std::uint32_t sequence = 0;
  };
  struct Logged {
    JournalBlock start = 0;
    std::uint32_t sequence = 0;
    JournalBlock blocks = 0;
  };

  [[nodiscard]] bool one_in(std::uint64_t n) { return random_() % n == 0; }
  [[nodiscard]] std::uint32_t block_bytes() const { return journal_->layout().block_bytes(); }
  std::vector<std::byte> some_bytes() {
    std::vector<std::byte> bytes(block_bytes());
    for (std::size_t i = 0; i < bytes.size(); i += 8) store_le(bytes.data() + i, random_());
    if (one_in(4)) store_be(bytes.data(), JournalHead::kMagic);
    return bytes;
  }
  void choose_targets() {
    while (targets_.size() < 16) {
      const FsBlock first = random_() % journal_->layout().blocks();
      for (const FsBlock each : {first, first + 1, first + 3}) {
        if (each < journal_->layout().blocks() && !journal_->file().has(each) &&
            journal_->layout().place_of(each).kind == ifsck::ExtLayout::Kind::kData) {
          targets_.push_back(each);
        }
      }
    }
    for (const FsBlock each : targets_) {
      blocks_.push_back(journal_->layout().bytes_of(each).covering_blocks().first);
    }
  }

  // What was made, or something else, comes to the disk: one write.
  void write_to_disk(const ByteRange& range) {
    std::vector<std::byte> bytes(range.length);
    ASSERT_TRUE(made_.read(range, bytes).has_value());
    write_to_disk(range, bytes);
  }
  void write_to_disk(const ByteRange& range, std::span<const std::byte> bytes) {
    ASSERT_TRUE(disk_.write(range, bytes).has_value());
    const BlockRange blocks = range.covering_blocks();
    std::vector<std::byte> whole(blocks.count.bytes());
    ASSERT_TRUE(disk_.read(to_bytes(blocks), whole).has_value());
    time_ns_ += 1 + random_() % 1000;
    last_ = trace_.write(VersionTime{time_ns_}, blocks.first, whole).value();
  }
  void write_block(JournalBlock block) {
    ++journal_writes_;
    write_to_disk(journal_->file().bytes_of(block));
  }
  void write_superblock() { write_block(0); }

  void write_transaction(std::vector<JournalBlock> written) {
    const bool ordered = options_.calm || !one_in(4);
    const JournalBlock commit = written.back();
    if (one_in(2)) {
      // All but the commit in any order; or all.
      std::ranges::shuffle(written.begin(), written.end() - (ordered ? 1 : 0), random_);
    }
    if (!options_.calm && one_in(8)) {
      late_.push_back(written.back());
      written.pop_back();
    }
    for (std::size_t i = 0; i < written.size(); ++i) {
      // Neighbours in one write, now and then.
      ByteRange range = journal_->file().bytes_of(written[i]);
      ++journal_writes_;
      while (i + 1 < written.size() && one_in(2)) {
        const ByteRange next = journal_->file().bytes_of(written[i + 1]);
        if (next.offset != range.end()) break;
        range.length += next.length;
        ++i;
        ++journal_writes_;
      }
      write_to_disk(range);
    }
    if (one_in(6)) write_block(commit);
    if (!options_.calm && one_in(6)) spoil_log();
  }

  void make_room(std::size_t blocks) {
    const JournalBlock ring = journal_->super().log_end - journal_->super().first;
    for (;;) {
      std::size_t used = blocks;
      for (const Logged& each : log_) used += each.blocks;
      if (used <= ring || !move_tail()) return;
    }
  }

  void something_else() {
    switch (random_() % (options_.calm ? 4 : 12)) {
      case 0: checkpoint(); break;
      case 1: (void)move_tail(); break;
      case 2: write_elsewhere(); break;
      case 3: options_.calm || one_in(2) ? crash() : empty(); break;
      case 4: turn_recovery(); break;
      case 5: spoil_superblock(); break;
      case 6:
      case 7: spoil_log(); break;
      case 8: write_again(); break;
      case 9: touch_superblock(); break;
      default: come_late(); break;
    }
  }
  // A block is written to its place.
  void checkpoint() {
    const ByteRange place = journal_->layout().bytes_of(targets_[random_() % targets_.size()]);
    write_to_disk(place, some_bytes());
  }
  void write_elsewhere() {
    const Lbn end{ifsck::JournalImage::kBytes / kBlockBytes - 1};
    write_to_disk({end.byte_offset(), block_bytes()}, some_bytes());
  }
  // The log is begun anew at another place, with what was there left over.
  void begin_log(std::uint32_t sequence, JournalBlock start) {
    MadeJournal::Options options = options_.journal;
    options.sequence = sequence;
    options.start = start;
    journal_.emplace(made_, options);
    log_.clear();
    late_.clear();
    tail_ = {start, sequence};
  }
  void crash() {
    const std::uint32_t next = journal_->sequence() + 1 + static_cast<std::uint32_t>(one_in(2));
    const JournalBlock last = journal_->super().log_end;
    begin_log(next, one_in(2) ? 1 : 1 + static_cast<JournalBlock>(random_() % (last - 1)));
    if (!options_.calm && one_in(2)) turn_recovery();
    write_superblock();
  }
  void empty() {
    tail_.start = 0;
    put_tail();
    write_superblock();
    if (one_in(2)) turn_recovery();
    begin_log(journal_->sequence(), journal_->next());
    if (one_in(2)) write_superblock();
  }
  void put_tail() {
    const std::uint64_t offset = journal_->file().bytes_of(0).offset;
    std::vector<std::byte> bytes(1024);
    ASSERT_TRUE(made_.read({offset, 1024}, bytes).has_value());
    store_be(bytes.data() + 0x18, tail_.sequence);
    store_be(bytes.data() + 0x1c, tail_.start);
    put_superblock(bytes);
    ASSERT_TRUE(made_.write({offset, 1024}, bytes).has_value());
  }
  // Its checksum.
  void put_superblock(std::vector<std::byte>& bytes) {
    if (!journal_->super().has_checksums()) return;
    store_be<std::uint32_t>(bytes.data() + 0xfc, 0);
    store_be(bytes.data() + 0xfc, ifsck::ext_crc(~0u, bytes));
  }
  // For a while the superblock does not say that the journal is to be replayed, or says it again.
  void turn_recovery() {
    std::vector<std::byte> bytes(1024);
    ASSERT_TRUE(disk_.read(kSuperblock, bytes).has_value());
    bytes[0x60] ^= std::byte{EXT3_FEATURE_INCOMPAT_RECOVER};
    write_to_disk(kSuperblock, bytes);
  }
  void touch_superblock() {
    std::vector<std::byte> bytes(1024);
    ASSERT_TRUE(disk_.read(kSuperblock, bytes).has_value());
    store_le(bytes.data() + 0x30, static_cast<std::uint32_t>(random_()));  // s_wtime
    write_to_disk(kSuperblock, bytes);
  }
  // The journal's, until it is written the next time.
  void spoil_superblock() {
    const ByteRange place{journal_->file().bytes_of(0).offset, 1024};
    std::vector<std::byte> bytes(1024);
    ASSERT_TRUE(made_.read(place, bytes).has_value());
    switch (random_() % 3) {
      case 0: std::ranges::fill(bytes, std::byte{}); break;
      case 1: store_be(bytes.data() + 0x1c, static_cast<std::uint32_t>(random_() % 200)); break;
      default: store_be(bytes.data() + 0x18, journal_->sequence() - 1); break;
    }
    if (one_in(2)) put_superblock(bytes);
    write_to_disk(place, bytes);
    if (one_in(2)) write_superblock();
  }
  [[nodiscard]] std::optional<JournalBlock> one_that_was_written() {
    const auto& written = journal_->written();
    if (written.empty()) return std::nullopt;
    const std::size_t last = std::min<std::size_t>(written.size(), one_in(2) ? 4 : 60);
    return written[written.size() - 1 - random_() % last].second;
  }
  // A byte of the log, maybe for a while.
  void spoil_log() {
    const auto block = one_that_was_written();
    if (!block) return;
    const ByteRange place = journal_->file().bytes_of(*block);
    std::vector<std::byte> bytes(place.length);
    ASSERT_TRUE(disk_.read(place, bytes).has_value());
    bytes[one_in(2) ? random_() % 64 : random_() % bytes.size()] ^=
        static_cast<std::byte>(1u << random_() % 8);
    write_to_disk(place, bytes);
    if (one_in(2)) come_late();
    if (!one_in(4)) write_block(*block);
  }
  void write_again() {
    if (const auto block = one_that_was_written()) write_block(*block);
  }
  void come_late() {
    for (const JournalBlock each : std::exchange(late_, {})) write_block(each);
  }

  const Options options_;
  std::mt19937_64 random_;
  const ifsck::JournalImage& image_;
  logging::test::TemporaryDirectory folder_;
  ifsck::TracePast base_;
  ifsck::Overlay made_overlay_;  // what was to be written
  ifsck::View made_;
  ifsck::Overlay disk_overlay_;  // ... and what came there
  ifsck::View disk_;
  ifsck::TraceWriter trace_;
  std::optional<MadeJournal> journal_;
  std::vector<FsBlock> targets_;
  std::vector<Lbn> blocks_;
  std::deque<Logged> log_;
  std::vector<JournalBlock> late_;
  Tail tail_;
  std::uint64_t time_ns_ = 0;
  std::uint64_t time_s_ = 1000;
  SequenceNumber last_;
  std::uint32_t transactions_ = 0;
  std::uint64_t journal_writes_ = 0;
};

}  // namespace mariner::uvfs
