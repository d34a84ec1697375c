#include "uvfs/file_contents.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ifsck/block_map.h"
#include "ifsck/ext_inode.h"
#include "uvfs/inode_record.h"

namespace mariner::uvfs {
namespace {

using ifsck::ExtInode;

constexpr std::uint64_t kBlocksOfFileMax = std::uint64_t{1} << 32;
constexpr std::size_t kManyBytes = 64 << 10;
// What is read ahead is let go of soon: a file is read once.
constexpr std::size_t kCachedBlocksMax = 2 * FileContents::kPieceBytesMax / kBlockBytes;

ByteRuns runs_of(const ifsck::BlockMap& map, std::uint32_t block_bytes) {
  ByteRuns runs;
  for (const ifsck::BlockMap::Run& each : map.runs) {
    if (each.unwritten) continue;
    runs.push_back(
        {each.logical * block_bytes, each.physical * block_bytes, each.count * block_bytes});
  }
  return runs;
}

// Of runs that overlap each byte once.
ByteRuns apart(ByteRuns runs) {
  std::uint64_t end = 0;
  for (ByteRun& each : runs) {
    const std::uint64_t known = std::min(end - std::min(end, each.logical), each.bytes);
    each.logical += known;
    each.place += known;
    each.bytes -= known;
    end = std::max(end, each.logical + each.bytes);
  }
  std::erase_if(runs, [](const ByteRun& each) { return each.bytes == 0; });
  return runs;
}

constexpr std::size_t kComparedBytes = 1u << 20;  // at a time
constexpr std::string_view kWayOut = ": expose a view and mount it there";

bool is_readable(std::uint16_t mode) { return LINUX_S_ISREG(mode) || LINUX_S_ISLNK(mode); }

}  // namespace

Error out_of_reach(std::string_view why) {
  return {ErrorCode::kUnavailable, std::string(why).append(kWayOut)};
}

bool is_out_of_reach(const Error& error) {
  return error.code == ErrorCode::kUnavailable && error.message.ends_with(kWayOut);
}

bool is_of_one_object(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorrupt ||
         error.code == ErrorCode::kInvalidArgument || is_out_of_reach(error);
}

Result<bool> have_same_bytes(FileContents& one, FileContents& other) {
  if (one.size() != other.size()) return false;
  std::vector<std::byte> mine(kComparedBytes);
  std::vector<std::byte> theirs(kComparedBytes);
  for (std::uint64_t at = 0; at < one.size(); at += kComparedBytes) {
    const auto got = one.read(at, mine);
    const auto also = got ? other.read(at, theirs) : got;
    if (!also) return is_of_one_object(also.error()) ? Result<bool>(false) : also.error();
    if (!std::equal(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(*got),
                    theirs.begin())) {
      return false;
    }
  }
  return true;
}

Result<FileContents> FileContents::open(ifsck::Past& past, const ifsck::ExtContext& context,
                                        const Object& object) {
  const ExtInode inode(object.inode);
  if (!is_readable(inode.mode())) {
    return Error{ErrorCode::kInvalidArgument, "neither a file nor a symbolic link: no contents"};
  }
  if ((inode.flags() & EXT4_ENCRYPT_FL) != 0) {
    return out_of_reach(
        "it is encrypted by the host's file system, whose key is not in the volume");
  }
  const std::uint32_t block_bytes = context.layout.block_bytes();
  const std::uint64_t most = kBlocksOfFileMax * block_bytes;
  if (inode.size() > most) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("its inode says {} bytes, and a file has {} at most", inode.size(), most)};
  }
  if (has_inline_contents(object.inode)) {
    return of_bytes(inode.size(), inline_contents(object.inode));
  }
  FileContents contents = of_runs(past, object.at, {.size = inode.size(), .runs = {}});
  const auto map = ifsck::map_blocks(*contents.view_, context.volume, context.layout, object.number,
                                     object.inode);
  if (!map) return map.error();
  contents.runs_ = apart(runs_of(*map, block_bytes));
  contents.whole_ = map->faults.empty();
  return contents;
}

FileContents FileContents::of_runs(ifsck::Past& past, SequenceNumber at, Lay lay) {
  FileContents contents(Kind::kRuns, lay.size);
  contents.whole_ = lay.whole;
  contents.runs_ = apart(std::move(lay.runs));
  contents.past_ = &past;
  contents.none_ = std::make_unique<ifsck::Overlay>();
  contents.view_ = std::make_unique<ifsck::View>(
      past, at, *contents.none_, ifsck::View::Options{.cached_blocks_max = kCachedBlocksMax});
  return contents;
}

FileContents FileContents::of_bytes(std::uint64_t size, std::vector<std::byte> bytes) {
  FileContents contents(Kind::kBytes, size);
  contents.bytes_ = std::move(bytes);
  if (contents.bytes_.size() > size) contents.bytes_.resize(size);
  return contents;
}

FileContents FileContents::of_reader(std::uint64_t size, Read read) {
  return of_reader(size, std::move(read), {{.logical = 0, .place = 0, .bytes = size}});
}

FileContents FileContents::of_reader(std::uint64_t size, Read read, const ByteRuns& stored) {
  FileContents contents(Kind::kReader, size);
  contents.read_ = std::move(read);
  for (const ByteRun& each : stored) {
    if (each.logical >= size) break;
    const std::uint64_t begin = each.logical / kMadeTogether * kMadeTogether;
    const std::uint64_t bytes = std::min(each.bytes, size - each.logical);
    const std::uint64_t pieces = (each.logical + bytes - begin + kMadeTogether - 1) / kMadeTogether;
    contents.runs_.push_back(
        {begin, begin, std::min<std::uint64_t>(pieces * kMadeTogether, size - begin)});
  }
  contents.runs_ = apart(std::move(contents.runs_));
  return contents;
}

Result<void> FileContents::fill(ByteRange volume, std::span<std::byte> to) {
  if (kind_ == Kind::kReader) return read_(volume.offset, to);
  // Many whole blocks go where they are wanted: nobody reads them twice.
  const std::size_t whole = volume.length / kBlockBytes * kBlockBytes;
  if (volume.offset % kBlockBytes != 0 || whole < kManyBytes) return view_->read(volume, to);
  const auto read = past_->read(questions_of({volume.offset, whole}), to.first(whole));
  if (!read || whole == volume.length) return read;
  return view_->read({volume.offset + whole, volume.length - whole}, to.subspan(whole));
}

std::vector<ifsck::Past::Question> FileContents::questions_of(ByteRange volume) const {
  std::vector<ifsck::Past::Question> questions;
  const BlockRange blocks = volume.covering_blocks();
  questions.reserve(blocks.count.value);
  for (Lbn lbn = blocks.first; lbn < blocks.end(); lbn = lbn + BlockCount{1}) {
    questions.push_back({lbn, view_->at()});
  }
  return questions;
}

Result<void> FileContents::for_each_piece(const Visit& visit) {
  if (kind_ == Kind::kBytes) return bytes_.empty() ? Result<void>{} : visit(0, bytes_);
  std::vector<std::byte> piece;
  for (const ByteRun& run : runs_) {
    const std::uint64_t end = std::min(size_, run.logical + run.bytes);
    for (std::uint64_t at = run.logical; at < end; at += piece.size()) {
      piece.resize(std::min(end - at, kPieceBytesMax));
      const std::uint64_t place = run.place + (at - run.logical);
      if (const auto filled = fill({place, piece.size()}, piece); !filled) return filled;
      if (const auto visited = visit(at, piece); !visited) return visited;
    }
  }
  return {};
}

Result<void> FileContents::for_each_byte(const Visit& visit) {
  static constexpr std::array<std::byte, 64 * 1024> kZeros{};
  std::uint64_t done = 0;
  const auto fill_up = [&](std::uint64_t end) -> Result<void> {
    while (done < end) {
      const auto some = std::span(kZeros).first(std::min<std::uint64_t>(end - done, kZeros.size()));
      if (const auto visited = visit(done, some); !visited) return visited;
      done += some.size();
    }
    return {};
  };
  const auto all = for_each_piece([&](std::uint64_t at, std::span<const std::byte> bytes) {
    if (const auto filled = fill_up(at); !filled) return filled;
    done += bytes.size();
    return visit(at, bytes);
  });
  return all ? fill_up(size_) : all;
}

Result<std::size_t> FileContents::read(std::uint64_t offset, std::span<std::byte> to) {
  if (offset >= size_) return std::size_t{0};
  to = to.first(std::min<std::uint64_t>(to.size(), size_ - offset));
  if (kind_ == Kind::kBytes) {
    std::ranges::fill(to, std::byte{});
    if (offset < bytes_.size()) {
      const auto rest = std::span(bytes_).subspan(offset);
      std::ranges::copy(rest.first(std::min(rest.size(), to.size())), to.begin());
    }
    return to.size();
  }
  const auto filled = kind_ == Kind::kReader ? read_(offset, to) : read_runs(offset, to);
  if (!filled) return filled.error();
  return to.size();
}

Result<void> FileContents::read_runs(std::uint64_t offset, std::span<std::byte> to) {
  const std::uint64_t end = offset + to.size();
  auto run = std::ranges::partition_point(
      runs_, [&](const ByteRun& each) { return each.logical + each.bytes <= offset; });
  std::uint64_t filled_to = offset;
  const auto zero_up_to = [&](std::uint64_t position) {
    if (position <= filled_to) return;
    std::ranges::fill(to.subspan(filled_to - offset, position - filled_to), std::byte{});
  };
  for (; run != runs_.end() && run->logical < end; ++run) {
    const std::uint64_t first = std::max(run->logical, offset);
    const std::uint64_t last = std::min(run->logical + run->bytes, end);
    if (first >= last) continue;
    zero_up_to(first);
    filled_to = std::max(filled_to, last);
    const auto filled = fill({run->place + (first - run->logical), last - first},
                             to.subspan(first - offset, last - first));
    if (!filled) return filled;
  }
  zero_up_to(end);
  return {};
}

void FileContents::expect(std::uint64_t offset, std::uint64_t bytes) {
  if (kind_ != Kind::kRuns || offset >= size_) return;
  const auto run = std::ranges::partition_point(
      runs_, [&](const ByteRun& each) { return each.logical + each.bytes <= offset; });
  if (run == runs_.end() || run->logical > offset) return;
  const std::uint64_t place = run->place + (offset - run->logical);
  bytes = std::min({bytes, size_ - offset, run->logical + run->bytes - offset});
  // (Of a block that is begun within, the beginning is there already.)
  if (place % kBlockBytes != 0) return;
  // (As fill() asks: what is no whole block comes by itself.)
  const std::uint64_t whole = bytes / kBlockBytes * kBlockBytes;
  if (whole >= kManyBytes) past_->expect(questions_of({place, whole}));
}

Result<std::string> FileContents::link_target() {
  std::string target(std::min(size_, kLinkBytesMax + 1), '\0');
  const auto got = read(0, std::as_writable_bytes(std::span(target)));
  if (!got) return got.error();
  if (target.empty() || target.size() > kLinkBytesMax || target.find('\0') != std::string::npos) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("what this symbolic link points to is damaged: {} bytes, of 1 to {} "
                             "without zeros",
                             size_, kLinkBytesMax)};
  }
  return target;
}

}  // namespace mariner::uvfs
