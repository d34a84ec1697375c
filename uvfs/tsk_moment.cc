#include "uvfs/tsk_moment.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ifsck/overlay.h"
#include "ifsck/view.h"

namespace mariner::uvfs {
namespace {

// libtsk asks for one block after another.
constexpr std::uint64_t kAhead = 16;

}  // namespace

struct TskMoment::Opened {
  Opened(ifsck::Past& of, SequenceNumber at)
      : past(of),
        view(of, at, none, {.cached_blocks_max = kBlocksMax}),
        image(of.size_bytes(),
              [this](BlockRange blocks, std::span<std::byte> to) { return fetch(blocks, to); }) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  Result<void> fetch(BlockRange blocks, std::span<std::byte> to) {
    if (blocks.count.value <= kAhead) {
      std::vector<Lbn> wanted;
      const std::uint64_t first = blocks.first.value / kAhead * kAhead;
      for (std::uint64_t i = first; i < blocks.end().value || i % kAhead != 0; ++i) {
        wanted.push_back(Lbn{i});
      }
      if (auto fetched = view.prefetch(wanted); !fetched) return fetched;
    }
    return view.read({blocks.first.byte_offset(), blocks.count.bytes()}, to);
  }

  ifsck::Past& past;
  ifsck::Overlay none;
  ifsck::View view;
  TskImage image;
  std::unique_ptr<TskFileSystem> files;
};

Result<std::unique_ptr<TskMoment>> TskMoment::open(ifsck::Past& past, SequenceNumber at) {
  auto opened = std::make_shared<Opened>(past, at);
  auto files = TskFileSystem::open(opened->image, {}, nullptr);
  if (!files) return files.error();
  opened->files = std::move(*files);
  return std::unique_ptr<TskMoment>(new TskMoment(std::move(opened)));
}

SequenceNumber TskMoment::at() const { return opened_->view.at(); }
ObjectNumber TskMoment::root() const { return opened_->files->root(); }
const TskFileSystem& TskMoment::file_system() const { return *opened_->files; }

Result<TskFileSystem::Look> TskMoment::look(ObjectNumber number) {
  auto look = opened_->files->look(number);
  if (!look || look->object.state.exists) return look;
  return Error{ErrorCode::kNotFound,
               fmt::format("object {} is not in use at #{}", shown_number(number), at().value)};
}

Result<ObjectState> TskMoment::state(ObjectNumber number) {
  const auto found = look(number);
  return found ? Result<ObjectState>(found->object.state) : found.error();
}

Result<TskMoment::Names> TskMoment::names(ObjectNumber directory) {
  if (auto kept = kept_.find(directory)) return kept;
  auto found = look(directory);
  if (!found) return found.error();
  if (!S_ISDIR(found->object.state.mode)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("object {} is no directory", shown_number(directory))};
  }
  std::vector<Name> names;
  names.reserve(found->names.size());
  for (TskName& each : found->names) {
    names.push_back({std::move(each.name), each.number, each.directory ? S_IFDIR : 0u});
  }
  std::ranges::stable_sort(names, {}, &Name::name);
  const auto repeated = std::ranges::unique(names, {}, &Name::name);
  names.erase(repeated.begin(), repeated.end());
  const auto made = std::make_shared<const std::vector<Name>>(std::move(names));
  kept_.keep(directory, made);
  return Names(made);
}

Result<FileContents> TskMoment::contents(ObjectNumber number) {
  auto found = look(number);
  if (!found) return found.error();
  TskObject& object = found->object;
  if (object.state.size > TskFileSystem::kFileBytesMax) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("it is said to have {} bytes, and a file has {} at most",
                             object.state.size, TskFileSystem::kFileBytesMax)};
  }
  switch (object.contents) {
    case TskObject::Contents::kNone:
      if (!S_ISREG(object.state.mode)) break;
      return Error{ErrorCode::kCorrupt,
                   fmt::format("it is said to have {} bytes, more than the volume: it is not read",
                               object.state.size)};
    case TskObject::Contents::kRuns:
      return FileContents::of_runs(
          opened_->past, at(),
          {.size = object.state.size, .runs = std::move(object.runs), .whole = object.whole});
    case TskObject::Contents::kInline:
      return FileContents::of_bytes(object.state.size, std::move(found->bytes));
    case TskObject::Contents::kMade: {
      auto read = opened_->files->reader(number);
      if (!read) return read.error();
      FileContents::Read made = [read = std::move(*read), keep = opened_](std::uint64_t offset,
                                                                          std::span<std::byte> to) {
        return read(offset, to);
      };
      // (A file that is compressed may be one hole with little in it, as any other.)
      const bool has_all_runs =
          object.whole && opened_->files->kind() == TskFileSystem::Kind::kNtfs;
      return has_all_runs ? FileContents::of_reader(object.state.size, std::move(made), object.runs)
                          : FileContents::of_reader(object.state.size, std::move(made));
    }
    case TskObject::Contents::kEncrypted:
      return out_of_reach(
          "it is encrypted by the host's file system, whose key is not in the volume");
    case TskObject::Contents::kElsewhere:
      return out_of_reach(
          "its contents are not where those of files are: Windows has compressed or deduplicated "
          "it, or keeps it in a cloud");
  }
  return Error{ErrorCode::kInvalidArgument, "neither a file nor a symbolic link: no contents"};
}

Result<ObjectAttributes> TskMoment::attributes(ObjectNumber number) {
  return opened_->files->attributes(number);
}

}  // namespace mariner::uvfs
