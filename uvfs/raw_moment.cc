#include "uvfs/raw_moment.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <vector>

namespace mariner::uvfs {
namespace {

constexpr ObjectNumber kRoot = 1;
constexpr ObjectNumber kImage = 2;

Error not_found(ObjectNumber number) {
  return {ErrorCode::kNotFound, fmt::format("nothing has the number {}", number)};
}

}  // namespace

Result<std::unique_ptr<RawMoment>> RawMoment::open(ifsck::Past& past, SequenceNumber at) {
  const auto time = past.time_of(at);
  if (!time) return time.error();
  return std::unique_ptr<RawMoment>(new RawMoment(past, at, *time));
}

ObjectNumber RawMoment::root() const { return kRoot; }

Result<ObjectState> RawMoment::state(ObjectNumber number) {
  if (number != kRoot && number != kImage) return not_found(number);
  // (What is in it is nobody else's to read.)
  ObjectState state{.exists = true, .mode = S_IFDIR | 0555, .links = 2};
  if (number == kImage) {
    state.mode = S_IFREG | 0400;
    state.links = 1;
    state.size = past_.size_bytes();
  }
  state.modified = state.changed = to_file_time(time_);
  return state;
}

Result<FilesMoment::Names> RawMoment::names(ObjectNumber directory) {
  if (directory != kRoot) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no directory", directory)};
  }
  return std::make_shared<const std::vector<Name>>(
      std::vector<Name>{{std::string(kName), kImage, S_IFREG}});
}

Result<FileContents> RawMoment::contents(ObjectNumber number) {
  if (number != kImage) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no file", number)};
  }
  return FileContents::of_runs(past_, at_,
                               {.size = past_.size_bytes(),
                                .runs = {{.logical = 0, .place = 0, .bytes = past_.size_bytes()}}});
}

Result<ObjectAttributes> RawMoment::attributes(ObjectNumber number) {
  if (number != kRoot && number != kImage) return not_found(number);
  return ObjectAttributes{};
}

}  // namespace mariner::uvfs
