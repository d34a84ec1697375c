// A volume at one moment, of which nothing is understood: a directory with one file, all of its
// bytes. Whoever knows what it is (a LUKS container, XFS) takes it from there.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/files_moment.h"

namespace mariner::uvfs {

// One thread.
class RawMoment final : public FilesMoment {
 public:
  static constexpr std::string_view kName = "volume.img";

  // `past` outlives it, and what it gives. Errors, here and below: of the past.
  [[nodiscard]] static Result<std::unique_ptr<RawMoment>> open(ifsck::Past& past,
                                                               SequenceNumber at);

  [[nodiscard]] bool is_raw() const override { return true; }
  [[nodiscard]] SequenceNumber at() const override { return at_; }
  [[nodiscard]] ObjectNumber root() const override;
  [[nodiscard]] std::size_t blocks_held() const override { return 0; }
  [[nodiscard]] Result<ObjectState> state(ObjectNumber number) override;
  [[nodiscard]] Result<Names> names(ObjectNumber directory) override;
  [[nodiscard]] Result<FileContents> contents(ObjectNumber number) override;
  [[nodiscard]] Result<ObjectAttributes> attributes(ObjectNumber number) override;

 private:
  RawMoment(ifsck::Past& past, SequenceNumber at, VersionTime time)
      : past_(past), at_(at), time_(time) {}

  ifsck::Past& past_;
  const SequenceNumber at_;
  const VersionTime time_;
};

}  // namespace mariner::uvfs
