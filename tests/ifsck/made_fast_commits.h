// Fast commits of our own making.
#pragma once

#include <vector>

#include "ifsck/ext_checksum.h"
#include "ifsck/fast_commit.h"
#include "tests/ifsck/made_journal.h"

namespace mariner::ifsck {

// The bytes of fast commits, with padding where a block is full.
class FastBytes {
 public:
  FastBytes(std::size_t block_bytes, std::uint32_t sequence)
      : block_bytes_(block_bytes), sequence_(sequence) {
    std::vector<std::byte> head(8);
    store_le(head.data() + 4, sequence);
    put(FastOperation::Kind::kHead, head);
  }
  void add(const FastOperation& operation) { put(operation.kind, value(operation)); }
  // The end of a commit, with `wrong` in its checksum.
  void commit(std::uint32_t wrong = 0) {
    if (room() < 4 + 8) pad();
    // It reaches to the end of the block.
    std::vector<std::byte> tail(room() - 4);
    store_le(tail.data(), sequence_);
    const std::size_t at = bytes_.size();
    put(FastOperation::Kind::kTail, tail);
    const std::uint32_t crc = ext_crc(crc_before_tail_, std::span(bytes_).subspan(at, 8));
    store_le(bytes_.data() + at + 8, crc ^ wrong);
    crc_ = 0;
  }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> whole = bytes_;
    whole.resize((whole.size() + block_bytes_ - 1) / block_bytes_ * block_bytes_);
    return whole;
  }

 private:
  [[nodiscard]] std::size_t room() const { return block_bytes_ - bytes_.size() % block_bytes_; }
  static std::vector<std::byte> value(const FastOperation& operation) {
    using Kind = FastOperation::Kind;
    std::vector<std::byte> out(16);
    store_le(out.data(), operation.inode);
    switch (operation.kind) {
      case Kind::kAddRange:
        store_le(out.data() + 4, static_cast<std::uint32_t>(operation.logical));
        store_le(out.data() + 8,
                 static_cast<std::uint16_t>(operation.count + (operation.unwritten ? 32768 : 0)));
        store_le(out.data() + 10, static_cast<std::uint16_t>(operation.physical >> 32));
        store_le(out.data() + 12, static_cast<std::uint32_t>(operation.physical));
        return out;
      case Kind::kDelRange:
        store_le(out.data() + 4, static_cast<std::uint32_t>(operation.logical));
        store_le(out.data() + 8, static_cast<std::uint32_t>(operation.count));
        out.resize(12);
        return out;
      case Kind::kInode:
        out.resize(4);
        out.insert(out.end(), operation.bytes.begin(), operation.bytes.end());
        return out;
      default: break;
    }
    store_le(out.data(), operation.parent);
    store_le(out.data() + 4, operation.inode);
    out.resize(8);
    const auto name = as_byte_span(operation.name);
    out.insert(out.end(), name.begin(), name.end());
    return out;
  }
  void pad() {
    const std::size_t bytes = room();
    if (bytes < 4) {
      bytes_.resize(bytes_.size() + bytes);
      return;
    }
    append(FastOperation::Kind::kPadding, std::vector<std::byte>(bytes - 4));
  }
  void put(FastOperation::Kind kind, const std::vector<std::byte>& value) {
    if (room() < 4 + value.size()) pad();
    append(kind, value);
  }
  void append(FastOperation::Kind kind, const std::vector<std::byte>& value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + 4);
    store_le(bytes_.data() + at, static_cast<std::uint16_t>(kind));
    store_le(bytes_.data() + at + 2, static_cast<std::uint16_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    crc_before_tail_ = crc_;
    crc_ = ext_crc(crc_, std::span(bytes_).subspan(at));
  }

  const std::size_t block_bytes_;
  const std::uint32_t sequence_;
  std::uint32_t crc_ = 0;
  std::uint32_t crc_before_tail_ = 0;
  std::vector<std::byte> bytes_;
};

// ... in a journal.
class MadeFastCommits {
 public:
  explicit MadeFastCommits(MadeJournal& journal)
      : journal_(journal), bytes_(journal.layout().block_bytes(), journal.sequence()) {}
  void add(const FastOperation& operation) { bytes_.add(operation); }
  void commit() {
    bytes_.commit();
    const auto whole = bytes_.bytes();
    const std::size_t size = journal_.layout().block_bytes();
    for (std::size_t i = 0; i < whole.size() / size; ++i) {
      journal_.put(journal_.super().fast_first() + static_cast<JournalBlock>(i),
                   std::span(whole).subspan(i * size, size));
    }
  }

 private:
  MadeJournal& journal_;
  FastBytes bytes_;
};

}  // namespace mariner::ifsck
