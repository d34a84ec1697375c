// The files of a volume at one moment, in a file system that libtsk reads.
//
// One thread.
#pragma once

#include <memory>
#include <string>

#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/files_moment.h"
#include "uvfs/kept_names.h"
#include "uvfs/tsk_file_system.h"

namespace mariner::uvfs {

class TskMoment final : public FilesMoment {
 public:
  static constexpr std::size_t kBlocksMax = 2048;  // that were read and are kept: 8 MiB

  // `past` outlives it, and what it gives. Errors as of TskFileSystem::open().
  [[nodiscard]] static Result<std::unique_ptr<TskMoment>> open(ifsck::Past& past,
                                                               SequenceNumber at);

  [[nodiscard]] SequenceNumber at() const override;
  [[nodiscard]] ObjectNumber root() const override;
  [[nodiscard]] std::size_t blocks_held() const override { return 0; }
  [[nodiscard]] const TskFileSystem& file_system() const;

  [[nodiscard]] Result<ObjectState> state(ObjectNumber number) override;
  [[nodiscard]] Result<Names> names(ObjectNumber directory) override;
  // (May be used without this.)
  [[nodiscard]] Result<FileContents> contents(ObjectNumber number) override;
  [[nodiscard]] Result<ObjectAttributes> attributes(ObjectNumber number) override;

 private:
  struct Opened;

  explicit TskMoment(std::shared_ptr<Opened> opened) : opened_(std::move(opened)) {}
  // Of one that exists.
  [[nodiscard]] Result<TskFileSystem::Look> look(ObjectNumber number);

  std::shared_ptr<Opened> opened_;
  KeptNames kept_;
};

}  // namespace mariner::uvfs
