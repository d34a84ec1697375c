// One transaction of a journal's log, as it stands there at a moment.
//
// The rules are those by which ifsck/journal_log.h reads a whole log (Linux, fs/jbd2/recovery.c);
// here a log is read piece by piece, so that what follows can be read when it has come.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ifsck/journal_block.h"
#include "ifsck/journal_superblock.h"
#include "proto/error.h"
#include "uvfs/journal_ring.h"

namespace mariner::uvfs {

struct LoggedTransaction {
  // A block of data.
  struct Copy {
    ifsck::FsBlock to = 0;
    ifsck::JournalBlock from = 0;
    bool escaped = false;  // its first four bytes are to be JournalHead::kMagic
    bool bad = false;      // its checksum is wrong
    friend bool operator==(const Copy&, const Copy&) = default;
  };

  ifsck::JournalBlock first = 0;
  std::uint32_t blocks = 0;  // of the log
  std::uint32_t sequence = 0;
  std::uint64_t time_s = 0;  // of its commit
  std::vector<Copy> copies;  // in the order of the log
  std::vector<ifsck::FsBlock> revoked;
  bool damaged = false;  // a revocation names more than it has room for
};

// What begins at a place of the log.
struct LogLook {
  struct Place {
    ifsck::JournalBlock first = 0;
    std::uint32_t room = 0;  // blocks from there on that are not another transaction's
    std::uint32_t sequence = 0;
    std::uint64_t last_time_s = 0;  // of the commit before; 0: there is none
  };

  std::optional<LoggedTransaction> whole;

  // Where there is none: the log ends here, ...
  bool refused = false;  // ... and no mount would replay any of it: a whole transaction is damaged
  // It will end here until one of these has other bytes, ...
  std::vector<ifsck::JournalBlock> heads;
  std::uint32_t blocks = 0;  // ... or, where `weighed`, one of so many from the place on
  bool weighed = false;

  // In a ring whose journal has `super` at its moment. Errors as of the past.
  [[nodiscard]] static Result<LogLook> at(JournalRing& ring, const ifsck::JournalSuperblock& super,
                                          const Place& place);
};

}  // namespace mariner::uvfs
