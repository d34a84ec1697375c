// What the blocks of a journal hold, and the superblock of the file system that it is in, at a
// moment that moves on, write by write.
//
// Only what is asked for, or was written, is read; several blocks at once. Beyond `kept_blocks_max`
// all that is kept is thrown away, and read again where it is asked for. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ifsck/journal_file.h"
#include "ifsck/past.h"
#include "proto/error.h"

namespace mariner::uvfs {

class JournalRing {
 public:
  struct Options {
    std::size_t kept_blocks_max = 32 * 1024;  // 128 MiB
    std::size_t questions_max = 2048;         // asked for at a time
    std::size_t ahead = 256;                  // blocks that are read with one that is not there
  };
  // What has other bytes than before, or may have.
  struct Touched {
    bool file_system = false;                 // its superblock
    std::vector<ifsck::JournalBlock> blocks;  // of the journal
  };

  // Both outlive it.
  JournalRing(ifsck::Past& past, const ifsck::JournalFile& file, SequenceNumber at,
              const Options& options);

  // All that it looks at, ascending.
  [[nodiscard]] std::span<const Lbn> places() const { return places_; }
  [[nodiscard]] SequenceNumber at() const { return at_; }
  [[nodiscard]] std::uint32_t block_bytes() const { return file_.block_bytes(); }

  // The next writes to these places, of which there are no others up to the last one: by sequence.
  // Those given before were all moved to.
  [[nodiscard]] Result<void> fetch(std::span<const ifsck::Past::Version> writes);
  // The same will be fetched next.
  void expect(std::span<const ifsck::Past::Version> writes);
  // With what was fetched up to then.
  [[nodiscard]] Touched move_to(SequenceNumber at);
  // What is kept may be wrong: as after a gap in the history.
  void forget();

  // Fills `to` with the beginning of a block of the journal. Errors as of the past.
  [[nodiscard]] Result<void> read(ifsck::JournalBlock block, std::span<std::byte> to);
  [[nodiscard]] Result<void> read_file_system(std::span<std::byte> to);
  // Blocks that were read from here, ever.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  using Block = std::array<std::byte, kBlockBytes>;
  using Slot = std::uint32_t;  // an index of places_
  // Where a block of the journal, or a part of it, stands.
  struct Piece {
    Slot slot = 0;
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    ifsck::JournalBlock block = 0;  // or kFileSystem
  };
  static constexpr ifsck::JournalBlock kFileSystem = ~ifsck::JournalBlock{0};

  void add_pieces(const ByteRange& bytes, ifsck::JournalBlock block);
  [[nodiscard]] Slot slot_of(Lbn lbn) const;
  Result<void> read_bytes(const ByteRange& range, std::span<std::byte> to);
  Result<void> ask(Slot slot);
  // Blocks, in the order of the questions.
  Result<void> ask_all(std::span<const ifsck::Past::Question> questions, std::vector<Block>& to);
  void take(Slot slot, const Block& bytes, Touched& touched);

  ifsck::Past& past_;
  const ifsck::JournalFile& file_;
  const Options options_;
  SequenceNumber at_;
  std::vector<Lbn> places_;
  std::vector<Piece> pieces_;                 // by slot
  std::vector<std::unique_ptr<Block>> kept_;  // by slot; null: is to be read
  std::size_t kept_blocks_ = 0;
  std::vector<ifsck::Past::Version> fetched_;
  std::vector<Block> fetched_bytes_;
  std::size_t taken_ = 0;  // of fetched_
  std::uint64_t looks_ = 0;
};

}  // namespace mariner::uvfs
