#include "uvfs/open_history.h"

#include <utility>

#include "uvfs/ext_history.h"
#include "uvfs/moment_tree.h"
#include "uvfs/replayed_past.h"
#include "uvfs/tsk_history.h"
#include "uvfs/tsk_moment.h"
#include "uvfs/volume_guess.h"

namespace mariner::uvfs {
namespace {

// Of one of the others, where ext2, ext3 and ext4 could not be opened for a reason: that, if there
// is something like them.
Error why_not(const Error& ext, const Error& others, ifsck::Past& past, SequenceNumber at) {
  if (!is_about_contents(others)) return others;
  return ext.code == ErrorCode::kNotFound ? no_file_system(past, at) : ext;
}

// The volume as a mount would have it, if it is ext2, ext3 or ext4.
Result<OpenHistory> open_ext_history(ifsck::Past& past, const Stretch& stretch) {
  OpenHistory history{.replayed = nullptr, .past = &past, .files = nullptr};
  auto replayed = ReplayedPast::open(past, stretch.first, stretch.last);
  if (replayed) {
    history.replayed = std::move(*replayed);
    history.past = history.replayed.get();
  } else if (replayed.error().code != ErrorCode::kInvalidArgument &&
             replayed.error().code != ErrorCode::kCorrupt) {
    return replayed.error();
  }
  auto files = ExtHistory::open(*history.past, stretch);
  if (!files) return files.error();
  history.files = std::move(*files);
  return history;
}

}  // namespace

bool is_about_contents(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalidArgument ||
         error.code == ErrorCode::kCorrupt;
}

Result<OpenHistory> open_history(ifsck::Past& past, const Stretch& stretch) {
  auto ext = open_ext_history(past, stretch);
  if (ext || !is_about_contents(ext.error())) return ext;
  auto files = TskHistory::open(past, stretch);
  if (!files) return why_not(ext.error(), files.error(), past, stretch.last);
  return OpenHistory{.replayed = nullptr, .past = &past, .files = std::move(*files)};
}

Result<std::unique_ptr<FilesMoment>> open_moment(ifsck::Past& past, SequenceNumber at,
                                                 LazyMender* mender) {
  auto ext = MomentTree::open(past, at, mender);
  if (ext) return std::unique_ptr<FilesMoment>(std::move(*ext));
  if (!is_about_contents(ext.error())) return ext.error();
  auto tsk = TskMoment::open(past, at);
  if (tsk) return std::unique_ptr<FilesMoment>(std::move(*tsk));
  return why_not(ext.error(), tsk.error(), past, at);
}

}  // namespace mariner::uvfs
