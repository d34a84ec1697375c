// What the log of a journal says is to be written where: its whole transactions, oldest first.
//
// As jbd2 finds them (Linux, fs/jbd2): from where the superblock says, transaction by transaction
// in the order of their numbers, until something else stands there. Only that part of the journal
// is read, ahead in steps that grow. Whatever the log says, it ends: no block is taken twice. Takes
// up to 48 bytes of memory for each block of the journal.
#pragma once

#include <cstdint>
#include <vector>

#include "ifsck/journal_file.h"
#include "ifsck/journal_superblock.h"
#include "ifsck/view.h"

namespace mariner::ifsck {

struct JournalLog {
  // A block of data.
  struct Write {
    FsBlock to = 0;  // as the log says: maybe none that there is
    JournalBlock from = 0;
    std::uint32_t transaction = 0;  // counted from the first one
    std::uint32_t checksum = 0;
    bool escaped = false;
    friend bool operator==(const Write&, const Write&) = default;
  };

  std::uint32_t transactions = 0;
  std::vector<Write> writes;  // in the order of the log, without those that were revoked
  std::uint64_t revoked = 0;  // writes that were
  // A transaction had a wrong checksum: the log ends before it.
  bool cut = false;
  // ... and that is no commit that was interrupted, but damage.
  bool damaged = false;

  // Of a journal that has `super`, whose log is not empty. kCorrupt: a transaction is damaged that
  // was whole once. Others: as the past says.
  [[nodiscard]] static Result<JournalLog> read(View& view, const JournalFile& file,
                                               const JournalSuperblock& super);
};

}  // namespace mariner::ifsck
