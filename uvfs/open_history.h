// The files of a stretch of a volume's history, with what they are read from: the volume as a mount
// would have it at each moment, if its file system has a journal.
#pragma once

#include <memory>

#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/ext_history.h"
#include "uvfs/file_contents.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

struct OpenHistory {
  std::unique_ptr<ifsck::Past> replayed;  // null: what is in place is all there is
  ifsck::Past* past = nullptr;            // what is read: this, or the past that was given
  std::unique_ptr<ExtHistory> files;

  // Of an inode at a moment of the stretch. Errors as of FileContents::open().
  [[nodiscard]] Result<FileContents> contents(ifsck::InodeNumber inode, SequenceNumber at);
};

// `past` outlives it. A journal that is on a device of its own, or damaged beyond being found, is
// as if it were not there. Errors as of ExtHistory::open(); kLimit: of ReplayedPast::open().
[[nodiscard]] Result<OpenHistory> open_history(ifsck::Past& past, const Stretch& stretch);

}  // namespace mariner::uvfs
