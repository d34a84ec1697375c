// What an object of ext2, ext3 or ext4 has as contents at a moment: of a file, or of a symbolic
// link.
//
// Read piece by piece, each with one question to the past; never the whole of it at once. What a
// file has no blocks for (holes), or has not written to them yet, is zeros. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_context.h"
#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::uvfs {

class FileContents {
 public:
  static constexpr std::uint64_t kPieceBytesMax = 4u << 20;
  static constexpr std::uint64_t kLinkBytesMax = 4095;  // of a target, as Linux has it

  struct Object {
    ifsck::InodeNumber number = 0;
    std::span<const std::byte> inode;  // as it stands in its table at that moment
    SequenceNumber at;
  };
  // `past` and `context` outlive it; blocks lie at the moment as the context says. Errors: of the
  // past; kInvalidArgument: neither a file nor a symbolic link; kCorrupt: larger than files can be;
  // kUnavailable: it is
  // encrypted, and no key is there.
  [[nodiscard]] static Result<FileContents> open(ifsck::Past& past,
                                                 const ifsck::ExtContext& context,
                                                 const Object& object);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Not, where what says where its blocks are is damaged: what is not found is zeros.
  [[nodiscard]] bool is_whole() const { return map_.faults.empty(); }

  // Calls `visit(offset, bytes)` for what is not a hole, in order, kPieceBytesMax at most at a time
  // and not beyond the size; until it has an error. Errors: its, and of the past.
  using Visit = std::function<Result<void>(std::uint64_t offset, std::span<const std::byte> bytes)>;
  [[nodiscard]] Result<void> for_each_piece(const Visit& visit);
  // The same, with the zeros of holes.
  [[nodiscard]] Result<void> for_each_byte(const Visit& visit);
  // Fills `to` with what is at `offset`, up to the size; says how much that was.
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> to);
  // Of a symbolic link. kCorrupt: it has none that there can be.
  [[nodiscard]] Result<std::string> link_target();

 private:
  FileContents(ifsck::Past& past, const ifsck::ExtContext& context, SequenceNumber at);
  [[nodiscard]] Result<void> fill(ByteRange volume, std::span<std::byte> to);

  // (In places of their own: a view keeps pointers to both.)
  std::unique_ptr<ifsck::Overlay> none_;
  std::unique_ptr<ifsck::View> view_;
  std::uint32_t block_bytes_;
  std::uint64_t size_ = 0;
  bool inline_ = false;
  std::vector<std::byte> inline_bytes_;
  ifsck::BlockMap map_;
};

}  // namespace mariner::uvfs
