// Follows the log of a file system's journal through a stretch of history, write by write: which
// transactions a replay would find at each moment.
//
// Kept is the log as it stands: its whole transactions, from where the journal's superblock says
// on. A write behind them lets more of it be read; one among them lets it be read again from there
// on, and so do a superblock that says another thing, and a break of the history. Each block of the
// journal that was written is asked for once, many together.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/journal_file.h"
#include "ifsck/journal_superblock.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/copy_store.h"
#include "uvfs/journal_ring.h"
#include "uvfs/logged_transaction.h"
#include "uvfs/replay_history.h"

namespace mariner::uvfs {

class JournalWalk {
 public:
  struct Options {
    std::uint64_t journal_blocks_max = 4u << 20;
    std::size_t writes_max = 4u << 20;          // to blocks of the journal: 16 GiB
    std::uint64_t moments_at_once = 1u << 20;   // that are asked about; more, where little is found
    std::uint64_t transactions_max = 4u << 20;  // that come to the log
    std::uint64_t changes_max = 16u << 20;      // of blocks, by them: 24 bytes each, and more
    std::uint64_t looks_max = std::uint64_t{1} << 27;  // at blocks of the log
    std::size_t breaks_max = 1024;                     // of the history
    std::size_t fetched_at_once = 2048;                // writes
    JournalRing::Options ring{};
  };
  // The stretch: from the moment `first` up to `last`.
  struct Stretch {
    SequenceNumber first;
    SequenceNumber last;
  };
  // A journal, as it lies at the stretch's end. (Where a moment's superblock says that there is
  // another one, nothing is replayed.)
  struct Journal {
    const ifsck::JournalFile& file;
    const ext2_super_block& file_system;
    std::uint32_t seed = 0;  // JournalSuperblock::seed; 0: of any
  };

  // `copies` gets the copies of all transactions that ever were in the log; null: nobody wants
  // them. kLimit: a bound of the options. Others: as the past says.
  [[nodiscard]] static Result<ReplayHistory> run(ifsck::Past& past, const Journal& journal,
                                                 const Stretch& stretch, const Options& options,
                                                 CopyStore* copies = nullptr);

 private:
  struct Entry {
    LoggedTransaction transaction;
    std::uint64_t begin = 0;  // blocks of the log, counted from any place
    ReplayHistory::Ordinal ordinal = 0;
  };
  // A copy that no replay can write.
  struct Bad {
    ifsck::FsBlock to = 0;
    ReplayHistory::Ordinal ordinal = 0;
  };
  struct FileSystem {
    bool replays = false;  // its journal
    ifsck::FsBlock blocks = 0;
  };

  JournalWalk(ifsck::Past& past, const Journal& journal, const Stretch& stretch,
              const Options& options, CopyStore* copies);

  Result<ReplayHistory> walk();
  Result<void> find_writes();
  [[nodiscard]] std::span<const ifsck::Past::Version> some_writes(std::size_t from) const;
  Result<void> find_breaks();
  Result<void> walk_some(std::span<const ifsck::Past::Version> writes);
  Result<void> pass_breaks(SequenceNumber end);
  [[nodiscard]] Result<void> check_limits() const;
  [[nodiscard]] Error limit(std::string_view what, std::uint64_t max) const;

  Result<void> begin();
  Result<void> write(const ReplayHistory::Moment& moment);
  Result<void> break_off(const ReplayHistory::Moment& moment);
  Result<bool> take_file_system();  // whether the log is to be read anew
  Result<bool> take_superblock();   // the same
  Result<void> take_blocks(std::span<const ifsck::JournalBlock> blocks);

  [[nodiscard]] std::uint32_t ring_blocks() const { return super_->log_end - super_->first; }
  [[nodiscard]] std::uint32_t length() const;
  [[nodiscard]] std::uint32_t next_sequence() const;
  [[nodiscard]] std::uint32_t offset_of(ifsck::JournalBlock block) const;
  [[nodiscard]] std::size_t index_of(std::uint32_t offset) const;
  [[nodiscard]] bool is_awaited(ifsck::JournalBlock block) const;
  bool move_tail(const ifsck::JournalSuperblock& next);
  void pop_front();
  void pop_back();
  void clear();
  Result<void> restart();
  Result<void> extend();
  Result<void> push_back(LoggedTransaction transaction);
  Result<void> keep_copies(const LoggedTransaction& transaction);
  [[nodiscard]] bool is_replayed() const;

  ifsck::Past& past_;
  const Journal journal_;
  const Stretch stretch_;
  const Options options_;
  CopyStore* const copies_;
  std::vector<std::byte> copy_;
  JournalRing ring_;
  ReplayHistory history_;
  std::vector<ifsck::Past::Version> writes_;   // by sequence
  std::vector<ReplayHistory::Moment> breaks_;  // ascending
  std::size_t broken_ = 0;                     // of them, that were passed
  std::uint64_t transactions_ = 0;             // that came

  FileSystem file_system_;
  std::optional<ifsck::JournalSuperblock> super_;
  std::deque<Entry> log_;
  ifsck::JournalBlock from_ = 0;  // where the log begins
  LogLook end_;                   // what is behind it
  std::vector<Bad> bad_;
  std::size_t damaged_ = 0;  // transactions in the log that are
};

}  // namespace mariner::uvfs
