#include "uvfs/file_contents.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ifsck/ext_inode.h"
#include "uvfs/inode_record.h"

namespace mariner::uvfs {
namespace {

using ifsck::BlockMap;
using ifsck::ExtInode;

constexpr std::uint64_t kBlocksOfFileMax = std::uint64_t{1} << 32;
// What is read ahead is let go of soon: a file is read once.
constexpr std::size_t kCachedBlocksMax = 2 * FileContents::kPieceBytesMax / kBlockBytes;

bool is_readable(std::uint16_t mode) { return LINUX_S_ISREG(mode) || LINUX_S_ISLNK(mode); }

}  // namespace

FileContents::FileContents(ifsck::Past& past, const ifsck::ExtContext& context, SequenceNumber at)
    : none_(std::make_unique<ifsck::Overlay>()),
      view_(std::make_unique<ifsck::View>(
          past, at, *none_, ifsck::View::Options{.cached_blocks_max = kCachedBlocksMax})),
      block_bytes_(context.layout.block_bytes()) {}

Result<FileContents> FileContents::open(ifsck::Past& past, const ifsck::ExtContext& context,
                                        const Object& object) {
  const ExtInode inode(object.inode);
  if (!is_readable(inode.mode())) {
    return Error{ErrorCode::kInvalidArgument, "neither a file nor a symbolic link: no contents"};
  }
  if ((inode.flags() & EXT4_ENCRYPT_FL) != 0) {
    return Error{
        ErrorCode::kUnavailable,
        "it is encrypted by the host's file system, whose key is not in the volume: expose "
        "a view and mount it there"};
  }
  FileContents contents(past, context, object.at);
  contents.size_ = inode.size();
  contents.inline_ = has_inline_contents(object.inode);
  if (contents.inline_) {
    contents.inline_bytes_ = inline_contents(object.inode);
  } else {
    auto map = ifsck::map_blocks(*contents.view_, context.volume, context.layout, object.number,
                                 object.inode);
    if (!map) return map.error();
    contents.map_ = std::move(*map);
  }
  const std::uint64_t most = kBlocksOfFileMax * contents.block_bytes_;
  if (contents.size_ <= most) return contents;
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("its inode says {} bytes, and a file has {} at most", contents.size_, most)};
}

Result<void> FileContents::fill(ByteRange volume, std::span<std::byte> to) {
  return view_->read(volume, to);
}

Result<void> FileContents::for_each_piece(const Visit& visit) {
  if (inline_) return inline_bytes_.empty() ? Result<void>{} : visit(0, inline_bytes_);
  std::vector<std::byte> piece;
  for (const BlockMap::Run& run : map_.runs) {
    if (run.unwritten) continue;
    const std::uint64_t begin = run.logical * block_bytes_;
    const std::uint64_t end = std::min(size_, begin + run.count * block_bytes_);
    for (std::uint64_t at = begin; at < end; at += piece.size()) {
      piece.resize(std::min(end - at, kPieceBytesMax));
      const std::uint64_t place = run.physical * block_bytes_ + (at - begin);
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
    // (Of a damaged map, whose runs may overlap, what comes first is meant.)
    const std::uint64_t known = std::min<std::uint64_t>(done - std::min(done, at), bytes.size());
    done += bytes.size() - known;
    return known == bytes.size() ? Result<void>{} : visit(at + known, bytes.subspan(known));
  });
  return all ? fill_up(size_) : all;
}

Result<std::size_t> FileContents::read(std::uint64_t offset, std::span<std::byte> to) {
  if (offset >= size_) return std::size_t{0};
  to = to.first(std::min<std::uint64_t>(to.size(), size_ - offset));
  std::ranges::fill(to, std::byte{});
  const std::uint64_t end = offset + to.size();
  if (inline_) {
    if (offset < inline_bytes_.size()) {
      const auto rest = std::span(inline_bytes_).subspan(offset);
      std::ranges::copy(rest.first(std::min(rest.size(), to.size())), to.begin());
    }
    return to.size();
  }
  auto run = std::ranges::partition_point(map_.runs, [&](const BlockMap::Run& each) {
    return (each.logical + each.count) * block_bytes_ <= offset;
  });
  for (; run != map_.runs.end() && run->logical * block_bytes_ < end; ++run) {
    const std::uint64_t begins = run->logical * block_bytes_;
    const std::uint64_t first = std::max(begins, offset);
    const std::uint64_t last = std::min(begins + run->count * block_bytes_, end);
    if (run->unwritten || first >= last) continue;
    const auto filled = fill({run->physical * block_bytes_ + (first - begins), last - first},
                             to.subspan(first - offset, last - first));
    if (!filled) return filled.error();
  }
  return to.size();
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
