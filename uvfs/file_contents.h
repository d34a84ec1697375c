// What an object of a file system has as contents at a moment: of a file, or of a symbolic link.
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
#include <string_view>
#include <vector>

#include "ifsck/ext_context.h"
#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "ifsck/view.h"
#include "proto/error.h"
#include "uvfs/byte_run.h"

namespace mariner::uvfs {

// Contents that are there, and that can only be read where the volume is mounted; `why` is why.
// kUnavailable.
[[nodiscard]] Error out_of_reach(std::string_view why);
// It is such an error. (That the past cannot be asked now is kUnavailable, too.)
[[nodiscard]] bool is_out_of_reach(const Error& error);
// It, or what else is wrong with one object (damaged, gone): not what the past says of itself.
[[nodiscard]] bool is_of_one_object(const Error& error);

class FileContents {
 public:
  static constexpr std::uint64_t kPieceBytesMax = 4u << 20;
  static constexpr std::uint64_t kLinkBytesMax = 4095;  // of a target, as Linux has it

  struct Object {
    ifsck::InodeNumber number = 0;
    std::span<const std::byte> inode;  // as it stands in its table at that moment
    SequenceNumber at;
  };
  // Of ext2, ext3 or ext4. `past` and `context` outlive it; blocks lie at the moment as the context
  // says. Errors: of the past; kInvalidArgument: neither a file nor a symbolic link; kCorrupt:
  // larger than files can be; out_of_reach(): it is encrypted, and no key is there.
  [[nodiscard]] static Result<FileContents> open(ifsck::Past& past,
                                                 const ifsck::ExtContext& context,
                                                 const Object& object);

  // As bytes of the volume at that moment; `past` outlives it. Runs ascend; one may repeat what is
  // in one before it, as those of a damaged map: the first is meant.
  struct Lay {
    std::uint64_t size = 0;
    ByteRuns runs;
    bool whole = true;  // see is_whole()
  };
  [[nodiscard]] static FileContents of_runs(ifsck::Past& past, SequenceNumber at, Lay lay);
  // That stand elsewhere: `bytes`, and zeros up to the size.
  [[nodiscard]] static FileContents of_bytes(std::uint64_t size, std::vector<std::byte> bytes);
  // That must be made of what the volume has (compressed ones): `read` fills `to` from `offset` on,
  // all of which is within the size.
  using Read = std::function<Result<void>(std::uint64_t offset, std::span<std::byte> to)>;
  [[nodiscard]] static FileContents of_reader(std::uint64_t size, Read read);
  // The same, where what is kMadeTogether bytes or more from all of `stored` (places do not matter)
  // is a hole.
  static constexpr std::uint64_t kMadeTogether = 1u << 20;
  [[nodiscard]] static FileContents of_reader(std::uint64_t size, Read read,
                                              const ByteRuns& stored);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Not, where what says where its blocks are is damaged: what is not found is zeros.
  [[nodiscard]] bool is_whole() const { return whole_; }

  // Calls `visit(offset, bytes)` for what is not a hole, in order, kPieceBytesMax at most at a time
  // and not beyond the size; until it has an error. Errors: its, and of the past.
  using Visit = std::function<Result<void>(std::uint64_t offset, std::span<const std::byte> bytes)>;
  [[nodiscard]] Result<void> for_each_piece(const Visit& visit);
  // The same, with the zeros of holes.
  [[nodiscard]] Result<void> for_each_byte(const Visit& visit);
  // Fills `to` with what is at `offset`, up to the size; says how much that was.
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> to);
  // What is read next begins with these bytes: what of them is in one piece is asked for already.
  void expect(std::uint64_t offset, std::uint64_t bytes);
  // Of a symbolic link. kCorrupt: it has none that there can be.
  [[nodiscard]] Result<std::string> link_target();

 private:
  enum class Kind : std::uint8_t { kRuns, kBytes, kReader };

  FileContents(Kind kind, std::uint64_t size) : kind_(kind), size_(size) {}
  [[nodiscard]] Result<void> fill(ByteRange volume, std::span<std::byte> to);
  [[nodiscard]] std::vector<ifsck::Past::Question> questions_of(ByteRange volume) const;
  [[nodiscard]] Result<void> read_runs(std::uint64_t offset, std::span<std::byte> to);

  Kind kind_;
  std::uint64_t size_ = 0;
  bool whole_ = true;
  ByteRuns runs_;  // of kRuns; of kReader, whose places are those in the file
  // Of kRuns. (In places of their own: a view keeps pointers to both.)
  std::unique_ptr<ifsck::Overlay> none_;
  std::unique_ptr<ifsck::View> view_;
  ifsck::Past* past_ = nullptr;
  std::vector<std::byte> bytes_;  // of kBytes
  Read read_;                     // of kReader
};

// What cannot be read is the same as nothing. Errors: of the past.
[[nodiscard]] Result<bool> have_same_bytes(FileContents& one, FileContents& other);

}  // namespace mariner::uvfs
