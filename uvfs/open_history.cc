#include "uvfs/open_history.h"

#include <utility>

#include "uvfs/replayed_past.h"

namespace mariner::uvfs {

Result<FileContents> OpenHistory::contents(ifsck::InodeNumber inode, SequenceNumber at) {
  if (const auto loaded = files->load(std::span(&inode, 1)); !loaded) return loaded.error();
  return FileContents::open(*past, files->context(),
                            {.number = inode, .inode = files->inode(inode, at), .at = at});
}

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

}  // namespace mariner::uvfs
