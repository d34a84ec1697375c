// Journals of our own making: transactions that are written into the journal of a view's file
// system, as jbd2 would.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/ext_checksum.h"
#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/journal_block.h"
#include "ifsck/journal_file.h"
#include "ifsck/journal_superblock.h"
#include "proto/bytes.h"

namespace mariner::ifsck {

class MadeJournal {
 public:
  using Super = JournalSuperblock;
  using Bytes = std::vector<std::byte>;
  struct Options {
    std::uint32_t version = 2;
    std::uint32_t compatible = 0;
    std::uint32_t incompatible = Super::kRevoke;
    std::uint32_t sequence = 1;
    JournalBlock start = 1;
    std::uint32_t fast_blocks = 0;
    std::int32_t error = 0;
    JournalBlock blocks = 0;  // of the journal; 0: all of its file's
  };

  // Its log is empty, and begins at `start`; the superblock says that it is to be replayed.
  MadeJournal(View& view, const Options& options) : view_(view), options_(options) {
    volume_.emplace(ExtVolume::open(view, {}).value());
    layout_.emplace(ExtLayout::of(*volume_).value());
    file_.emplace(JournalFile::open(*volume_, *layout_).value());
    super_.blocks =
        options.blocks != 0 ? options.blocks : static_cast<JournalBlock>(file_->blocks());
    super_.first = 1;
    super_.log_end = super_.blocks - options.fast_blocks;
    super_.incompatible = options.incompatible;
    super_.compatible = options.compatible;
    super_.seed = ext_crc(~0u, as_byte_span(kUuid));
    next_ = options.start;
    sequence_ = options.sequence;
    put_superblock();
    std::array<std::byte, 1024> bytes{};
    EXPECT_TRUE(view.read({1024, 1024}, bytes).has_value());
    auto super = std::bit_cast<ext2_super_block>(bytes);
    ext2fs_set_feature_journal_needs_recovery(&super);
    ext2fs_superblock_csum_set(volume_->fs(), &super);
    bytes = std::bit_cast<std::array<std::byte, 1024>>(super);
    EXPECT_TRUE(view.write({1024, 1024}, bytes).has_value());
  }

  void write(FsBlock to, Bytes bytes) { data_.emplace_back(to, std::move(bytes)); }
  void revoke(FsBlock block) { revoked_.push_back(block); }
  // Writes what there is, with `commit` as a whole transaction.
  void commit(std::uint64_t time_s, bool commit = true) {
    put_descriptors();
    put_revocations();
    if (commit) put_commit(time_s);
    data_.clear();
    revoked_.clear();
    if (commit) ++sequence_;
    crc_ = ~0u;
  }
  // Of the journal.
  void put(JournalBlock at, std::span<const std::byte> bytes) {
    EXPECT_TRUE(view_.write(file_->bytes_of(at), bytes).has_value());
  }

  [[nodiscard]] std::uint32_t sequence() const { return sequence_; }  // of the next transaction
  [[nodiscard]] JournalBlock next() const { return next_; }           // that is written
  [[nodiscard]] const Super& super() const { return super_; }
  [[nodiscard]] const ExtLayout& layout() const { return *layout_; }
  [[nodiscard]] const ExtVolume& volume() const { return *volume_; }
  [[nodiscard]] const JournalFile& file() const { return *file_; }
  // Kinds of blocks that were written, and where.
  [[nodiscard]] const std::vector<std::pair<JournalHead::Kind, JournalBlock>>& written() const {
    return written_;
  }
  static constexpr JournalHead::Kind kData{0};

 private:
  static constexpr std::string_view kUuid = "0123456789abcdef";

  [[nodiscard]] std::size_t block_bytes() const { return file_->block_bytes(); }
  void put_superblock() {
    Bytes bytes(block_bytes());
    store_be<std::uint32_t>(bytes.data(), JournalHead::kMagic);
    const std::uint32_t fields[] = {
        options_.version + 2, 0,
        file_->block_bytes(), super_.blocks,
        super_.first,         options_.sequence,
        options_.start,       static_cast<std::uint32_t>(options_.error)};
    for (std::size_t i = 0; i < std::size(fields); ++i) {
      store_be(bytes.data() + 4 + 4 * i, fields[i]);
    }
    if (options_.version == 2) {
      store_be(bytes.data() + 0x24, options_.compatible);
      store_be(bytes.data() + 0x28, options_.incompatible);
      std::ranges::copy(as_byte_span(kUuid), bytes.begin() + 0x30);
      store_be<std::uint32_t>(bytes.data() + 0x40, 1);
      bytes[0x50] = std::byte{super_.has_checksums() ? std::uint8_t{4} : std::uint8_t{0}};
      store_be(bytes.data() + 0x54, options_.fast_blocks);
      if (super_.has_checksums()) {
        store_be(bytes.data() + 0xfc, ext_crc(~0u, std::span(bytes).first(1024)));
      }
    }
    put(0, bytes);
  }
  [[nodiscard]] Bytes head(JournalHead::Kind kind) const {
    Bytes bytes(block_bytes());
    store_be<std::uint32_t>(bytes.data(), JournalHead::kMagic);
    store_be(bytes.data() + 4, static_cast<std::uint32_t>(kind));
    store_be(bytes.data() + 8, sequence_);
    return bytes;
  }
  void append(JournalHead::Kind kind, std::span<const std::byte> bytes) {
    put(next_, bytes);
    written_.emplace_back(kind, next_);
    if (++next_ == super_.log_end) next_ = super_.first;
  }
  void add_tail(Bytes& bytes) const {
    if (!super_.has_checksums()) return;
    store_be(bytes.data() + bytes.size() - 4, ext_crc(super_.seed, bytes));
  }
  [[nodiscard]] std::size_t tag_bytes() const {
    if (super_.has(Super::kChecksumV3)) return 16;
    return 8u + (super_.has(Super::kChecksumV2) ? 2u : 0u) + (super_.has(Super::k64Bit) ? 4u : 0u);
  }
  void put_descriptors() {
    for (std::size_t done = 0; done < data_.size();) {
      Bytes bytes = head(JournalHead::Kind::kDescriptor);
      std::size_t at = 12;
      const std::size_t first = done;
      const std::size_t end = bytes.size() - (super_.has_checksums() ? 4 : 0);
      while (done < data_.size()) {
        std::uint32_t flags = done == first ? 0 : 2;
        const std::size_t size = tag_bytes() + (flags == 0 ? 16 : 0);
        const bool full = at + size + tag_bytes() > end;
        if (full || done + 1 == data_.size()) flags |= 8;
        auto& [to, data] = data_[done++];
        if (load_be<std::uint32_t>(data.data()) == JournalHead::kMagic) {
          store_be<std::uint32_t>(data.data(), 0);
          flags |= 1;
        }
        put_tag(bytes.data() + at, to, flags, data);
        at += size;
        if (full) break;
      }
      add_tail(bytes);
      crc_ = crc32_be(crc_, bytes);
      append(JournalHead::Kind::kDescriptor, bytes);
      for (std::size_t i = first; i < done; ++i) {
        crc_ = crc32_be(crc_, data_[i].second);
        append(kData, data_[i].second);
      }
    }
  }
  void put_tag(std::byte* at, FsBlock to, std::uint32_t flags, const Bytes& data) const {
    std::array<std::byte, 4> number{};
    store_be(number.data(), sequence_);
    const std::uint32_t crc = ext_crc(ext_crc(super_.seed, number), data);
    store_be(at, static_cast<std::uint32_t>(to));
    if (super_.has(Super::kChecksumV3)) {
      store_be(at + 4, flags);
      store_be(at + 8, static_cast<std::uint32_t>(to >> 32));
      store_be(at + 12, crc);
      return;
    }
    if (super_.has(Super::kChecksumV2)) store_be(at + 4, static_cast<std::uint16_t>(crc));
    store_be(at + 6, static_cast<std::uint16_t>(flags));
    if (super_.has(Super::k64Bit)) store_be(at + 8, static_cast<std::uint32_t>(to >> 32));
  }
  void put_revocations() {
    const std::size_t size = super_.has(Super::k64Bit) ? 8 : 4;
    for (std::size_t done = 0; done < revoked_.size();) {
      Bytes bytes = head(JournalHead::Kind::kRevoke);
      std::size_t at = 16;
      for (; done < revoked_.size() && at + size + 4 <= bytes.size(); at += size, ++done) {
        if (size == 8) {
          store_be<std::uint64_t>(bytes.data() + at, revoked_[done]);
        } else {
          store_be(bytes.data() + at, static_cast<std::uint32_t>(revoked_[done]));
        }
      }
      store_be(bytes.data() + 12, static_cast<std::uint32_t>(at));
      add_tail(bytes);
      append(JournalHead::Kind::kRevoke, bytes);
    }
  }
  void put_commit(std::uint64_t time_s) {
    Bytes bytes = head(JournalHead::Kind::kCommit);
    store_be(bytes.data() + 48, time_s);
    if ((super_.compatible & Super::kCompatChecksum) != 0) {
      bytes[12] = std::byte{1};
      bytes[13] = std::byte{4};
      store_be(bytes.data() + 16, crc_);
    }
    if (super_.has_checksums()) store_be(bytes.data() + 16, ext_crc(super_.seed, bytes));
    append(JournalHead::Kind::kCommit, bytes);
  }

  View& view_;
  const Options options_;
  std::optional<ExtVolume> volume_;
  std::optional<ExtLayout> layout_;
  std::optional<JournalFile> file_;
  Super super_;
  JournalBlock next_ = 0;
  std::uint32_t sequence_ = 0;
  std::uint32_t crc_ = ~0u;
  std::vector<std::pair<FsBlock, Bytes>> data_;
  std::vector<FsBlock> revoked_;
  std::vector<std::pair<JournalHead::Kind, JournalBlock>> written_;
};

}  // namespace mariner::ifsck
