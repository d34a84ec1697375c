// A volume with an ext3 or ext4 file system as a mount would have it, at every moment of a stretch
// of its history: what the journal had committed is in its place.
//
// So the history of a file is that of its blocks, however long they wait in the journal. For each
// block but those below, read() of a moment gives what ifsck::replay_journal() leaves of it there;
// where the journal cannot be replayed at a moment, or need not, that is what stands in place.
// Not as after a replay are
//   - the journal itself and the superblock (still says that the journal is to be replayed), and
//     what a mount counts, or does, after the replay: sums of what is free, orphans;
//   - what fast commits say: it appears with the next whole commit;
//   - moments at which the file system had its journal in another place, with another UUID or
//     another block size than at the stretch's end (a file system that was made anew): nothing is
//     replayed there;
//   - moments at which more than the journal is damaged, so that replay_journal() gives up before
//     or after its work: group descriptors and the journal's inode are taken as they are at the
//     stretch's end, and what a replay would make of the superblock is not looked at.
// The journal's history is read once, in open(): about one question for 2048 blocks that were
// written to it. Memory: about 100 bytes for each block that a transaction wrote, and what
// CopyStore keeps. One thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/journal_file.h"
#include "ifsck/past_behind.h"
#include "proto/error.h"
#include "uvfs/copy_store.h"
#include "uvfs/journal_walk.h"
#include "uvfs/replay_history.h"

namespace mariner::uvfs {

class ReplayedPast final : public ifsck::PastBehind {
 public:
  using Options = JournalWalk::Options;

  // Of the moments from `first` up to `last`; `past` outlives it. Without a journal within the file
  // system as it is at `last` it is the past as it is, of any moments.
  // kNotFound, kCorrupt, kInvalidArgument: as ExtVolume::open() and JournalFile::open() at `last`;
  // kInvalidArgument, too: `first` is behind `last`. kLimit: a bound of the options, and a shorter
  // stretch will do. Others: as the past says.
  [[nodiscard]] static Result<std::unique_ptr<ReplayedPast>> open(ifsck::Past& past,
                                                                  SequenceNumber first,
                                                                  SequenceNumber last,
                                                                  const Options& options);
  [[nodiscard]] static Result<std::unique_ptr<ReplayedPast>> open(ifsck::Past& past,
                                                                  SequenceNumber first,
                                                                  SequenceNumber last) {
    return open(past, first, last, Options{});
  }

  // Of these, kOutsideWindow, too: a moment that is not of the stretch. (The past is asked
  // twice at most.)
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override;
  void expect(std::span<const Question> questions) override;
  // With what the journal changed; maybe some that have stayed as they were.
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override;
  // Writes to the blocks themselves, but for those to blocks that the log has, and those by which
  // the journal changed them, wherever they were to; maybe some that have not. None is missing.
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override;

 private:
  struct Journal {
    ifsck::JournalFile file;
    ReplayHistory history;
    CopyStore copies;
  };
  // Bytes of an answer that are in another block.
  struct Patch {
    std::size_t to = 0;
    ifsck::JournalBlock from = 0;
    std::uint64_t within = 0;  // bytes of that before
    std::uint64_t bytes = 0;
    SequenceNumber at;
    bool escaped = false;
  };

  ReplayedPast(ifsck::Past& past, SequenceNumber first, SequenceNumber last)
      : PastBehind(past), first_(first), last_(last) {}

  [[nodiscard]] Result<void> check(SequenceNumber from, SequenceNumber to) const;
  // Blocks of the file system that lie in one of the volume's, or that it lies in: [first, end).
  [[nodiscard]] std::pair<ifsck::FsBlock, ifsck::FsBlock> within(Lbn block) const;
  // What it wrote is not what is seen: the log has all of the block.
  [[nodiscard]] bool is_hidden(const Version& write) const;
  void find_patches(const Question& question, std::size_t to, std::vector<Patch>& patches) const;
  [[nodiscard]] ByteRange place_of(const Patch& patch) const;
  // What is asked of the past for these questions; and of which of them, and which answers are
  // escaped. What is kept of copies is taken, if there is where to.
  struct Asked {
    std::vector<Question> questions;
    std::vector<std::size_t> of;
    std::vector<Patch> patches;  // of parts of a block
    std::vector<std::size_t> escaped;
  };
  [[nodiscard]] Asked asked_for(std::span<const Question> questions, std::span<std::byte> to);
  // Of a copy that is in memory. False: it is not.
  [[nodiscard]] bool take_kept(const Patch& patch, std::span<std::byte> to);
  Result<void> read_some(std::span<const Question> asked, std::span<const std::size_t> of,
                         std::span<std::byte> to);
  Result<void> read_patches(std::span<const Patch> patches, std::span<std::byte> to);

  const SequenceNumber first_;
  const SequenceNumber last_;
  std::optional<Journal> journal_;  // nothing: the past is as it is
  std::vector<std::byte> copy_;     // of one block
};

}  // namespace mariner::uvfs
