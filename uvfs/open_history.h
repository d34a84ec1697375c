// The files of a stretch of a volume's history, with what they are read from: the volume as a mount
// would have it at each moment, if its file system has a journal.
#pragma once

#include <memory>

#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/files_history.h"
#include "uvfs/files_moment.h"
#include "uvfs/lazy_mender.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

struct OpenHistory {
  std::unique_ptr<ifsck::Past> replayed;  // null: what is in place is all there is
  ifsck::Past* past = nullptr;            // what is read: this, or the past that was given
  std::unique_ptr<FilesHistory> files;

  [[nodiscard]] Result<FileContents> contents(ObjectNumber number, SequenceNumber at) {
    return files->contents(number, at);
  }
};

// Of the file system that is there at the stretch's last moment; `past` outlives it. A journal that
// is on a device of its own, or damaged beyond being found, is as if it were not there. kNotFound:
// none that is understood; what was looked for, what is there instead, and what to do. Others: of
// the past; kLimit: of ReplayedPast::open().
[[nodiscard]] Result<OpenHistory> open_history(ifsck::Past& past, const Stretch& stretch);

// Such an error, of a damaged one, too: not what the past says of itself, but what it holds.
[[nodiscard]] bool is_about_contents(const Error& error);

// The same of one moment. `mender`: as of MomentTree::open().
[[nodiscard]] Result<std::unique_ptr<FilesMoment>> open_moment(ifsck::Past& past, SequenceNumber at,
                                                               LazyMender* mender = nullptr);

}  // namespace mariner::uvfs
