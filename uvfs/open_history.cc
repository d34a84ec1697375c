#include "uvfs/open_history.h"

#include <utility>

#include "uvfs/ext_history.h"
#include "uvfs/moment_tree.h"
#include "uvfs/replayed_past.h"

namespace mariner::uvfs {

Result<OpenHistory> open_history(ifsck::Past& past, const Stretch& stretch) {
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

Result<std::unique_ptr<FilesMoment>> open_moment(ifsck::Past& past, SequenceNumber at) {
  auto ext = MomentTree::open(past, at);
  return ext ? Result<std::unique_ptr<FilesMoment>>(std::move(*ext)) : ext.error();
}

}  // namespace mariner::uvfs
