// The history of a file system that libtsk reads (NTFS, exFAT, FAT, HFS+, UFS) over a stretch,
// object by object: each is read again at those writes alone that change bytes which it was read
// from, so that it is the same as if every moment had been looked at. (Of contents that lie in the
// volume as they are no byte is read but where a write may have changed them.)
//
// It knows such a file system by what it was opened by, and nothing of how it is made. One that
// begins within the stretch (it was made anew) shortens it: see stretch(). Moments at which it
// cannot be opened have no objects. One thread.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/block_timelines.h"
#include "uvfs/files_history.h"
#include "uvfs/tsk_file_system.h"
#include "uvfs/tsk_moment.h"

namespace mariner::uvfs {

class TskHistory final : public FilesHistory {
 public:
  // Of objects that are not as before, in what is loaded at a time: up to 300 bytes for each.
  static constexpr std::size_t kReadingsMax = 4'000'000;
  static constexpr std::size_t kMomentsMax = 4;  // that contents are read at

  // `past` outlives it. kNotFound: at the stretch's last moment there is none of these. Others,
  // here and below: of the past; kLimit.
  [[nodiscard]] static Result<std::unique_ptr<TskHistory>> open(ifsck::Past& past,
                                                                const Stretch& wanted);

  [[nodiscard]] const Stretch& stretch() const override { return timelines_->stretch(); }
  [[nodiscard]] VersionTime first_time() const override { return timelines_->first_time(); }
  [[nodiscard]] ObjectNumber root() const override { return root_; }

  [[nodiscard]] Result<void> load(std::span<const ObjectNumber> numbers) override;
  [[nodiscard]] std::size_t objects() const override { return all_.size(); }
  [[nodiscard]] const ObjectHistory* find(ObjectNumber number) const override;
  [[nodiscard]] const NameHistory* names(ObjectNumber number) const override;

  [[nodiscard]] ObjectState state(ObjectNumber number, SequenceNumber at) const override;
  [[nodiscard]] Result<FileContents> contents(ObjectNumber number, SequenceNumber at) override;
  [[nodiscard]] Result<ObjectAttributes> attributes(ObjectNumber number,
                                                    SequenceNumber at) override;

 private:
  // What an object was found to be, until the next one.
  struct Reading {
    Instant from;
    TskObject object;
  };
  struct One {
    std::vector<Reading> readings;
    ObjectHistory history;
    std::unique_ptr<NameHistory> names;
  };
  class Opening;  // of the file system, at every moment
  class Loading;  // of some objects

  explicit TskHistory(ifsck::Past& past) : past_(past) {}
  [[nodiscard]] Result<TskMoment*> moment(SequenceNumber at);

  ifsck::Past& past_;
  std::unique_ptr<BlockTimelines> timelines_;
  TskFileSystem::Kind kind_{};
  std::string identity_;
  ObjectNumber root_ = 0;
  ObjectHistory::Stamp stamp_{};
  std::unordered_map<ObjectNumber, One> all_;
  // The last one that was asked for is in front.
  std::list<std::unique_ptr<TskMoment>> moments_;
};

}  // namespace mariner::uvfs
