// A file system that libtsk reads (NTFS, exFAT, FAT12, FAT16, FAT32, HFS+, UFS), at the moment of
// its image.
//
// What it says of an object is made of bytes that were read for this object, and of those that were
// read in opening it, and of nothing else: whoever knows that none of them has changed knows what
// it would say. All of libtsk is behind this (tsk_look.h, tsk_image.h). What stands in directories
// of NTFS, exFAT and FAT is read without it (ntfs_index.h, fat_names.h). One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "uvfs/byte_run.h"
#include "uvfs/file_contents.h"
#include "uvfs/object_attributes.h"
#include "uvfs/object_history.h"
#include "uvfs/object_number.h"
#include "uvfs/object_state.h"
#include "uvfs/tsk_image.h"

struct TSK_FS_INFO;

namespace mariner::uvfs {

struct TskObject {
  enum class Contents : std::uint8_t {
    kNone,       // it is neither file nor link
    kRuns,       // as they lie in the volume
    kInline,     // elsewhere, few
    kMade,       // out of what is in the runs: compressed
    kEncrypted,  // ... with a key that the volume does not have
    kElsewhere,  // ... by a filter of Windows alone: compressed by it, deduplicated, in a cloud
  };
  using Digest = std::array<std::uint64_t, 2>;

  ObjectState state;
  Contents contents{};
  ByteRuns runs;
  bool whole = true;  // what says where they are is not damaged
  // XXH3 of contents, of kInline and kMade. Nothing: what is in the runs says as much (of
  // large ones).
  std::optional<Digest> digest;
  Digest attributes{};  // of what is beside the contents
  friend bool operator==(const TskObject&, const TskObject&) = default;
};

struct TskName {
  std::string name;
  ObjectNumber number = 0;
  bool directory = false;
};

class TskFileSystem {
 public:
  enum class Kind : std::uint8_t { kNtfs, kFat, kHfs, kUfs };

  // Named bounds: what says more is damage. kLimit where nothing can be said then.
  static constexpr std::uint64_t kDirectoryBytesMax = std::uint64_t{1} << 28;
  static constexpr std::size_t kNamesMax = 4'000'000;  // of a directory
  static constexpr std::size_t kRunsMax = 4'000'000;   // of a file
  static constexpr std::size_t kStreamsMax = 4096;     // beside the contents of a file
  static constexpr std::size_t kAttributeBytesMax = 64 * 1024;
  static constexpr std::uint64_t kDigestBytesMax = 64u << 20;  // of what is kMade
  static constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 56;

  // `image` outlives it. Without a kind: the first that it is. kNotFound: it is none. Others, here
  // and below: of the past. `read_by`, if not null, gets what that was decided by, ascending.
  [[nodiscard]] static Result<std::unique_ptr<TskFileSystem>> open(TskImage& image,
                                                                   std::optional<Kind> kind,
                                                                   std::vector<ByteRange>* read_by);
  ~TskFileSystem();
  TskFileSystem(const TskFileSystem&) = delete;
  TskFileSystem& operator=(const TskFileSystem&) = delete;

  [[nodiscard]] Kind kind() const { return kind_; }
  // "NTFS"
  [[nodiscard]] std::string name() const;
  // Another file system has another one, that was made in the same place.
  [[nodiscard]] const std::string& identity() const { return identity_; }
  [[nodiscard]] ObjectNumber root() const;
  // What it has learned by being opened, as far as that is known: where it is the same as before,
  // so is what it says of objects none of whose bytes were written. Empty: not known.
  [[nodiscard]] std::string learned() const;
  [[nodiscard]] ObjectHistory::Stamp stamp() const;

  // The image is at another moment now, at which the bytes that it was opened by are the same; or
  // reads are to be known that were made before.
  [[nodiscard]] Result<void> forget();

  struct Look {
    TskObject object;
    std::vector<std::byte> bytes;  // of kInline: the contents
    std::vector<TskName> names;    // of a directory
    bool names_whole = true;       // none is missing because what has it cannot be read
  };
  // Names are in no order, and may be there twice: the first is meant. kLimit.
  [[nodiscard]] Result<Look> look(ObjectNumber number);

  // Of one that exists.
  [[nodiscard]] Result<FileContents::Read> reader(ObjectNumber number);
  [[nodiscard]] Result<ObjectAttributes> attributes(ObjectNumber number);

 private:
  struct Close {
    void operator()(TSK_FS_INFO* fs) const;
  };
  // Of FAT and exFAT: where the numbers of entries begin, and clusters.
  struct Places {
    std::uint64_t data = 0;  // byte of the volume
    std::uint64_t cluster_bytes = 0;
  };

  TskFileSystem(TskImage& image, Kind kind) : image_(image), kind_(kind) {}
  // False: it is none. Adds what was read.
  [[nodiscard]] Result<bool> open(std::vector<ByteRange>& reads);
  [[nodiscard]] bool find_places();
  void forget_bitmap();  // of NTFS
  [[nodiscard]] bool is_bitmap(const ByteRange& range) const;
  void forget_table();  // of FAT and exFAT
  [[nodiscard]] bool is_exfat() const;

  TskImage& image_;
  const Kind kind_;
  std::unique_ptr<TSK_FS_INFO, Close> fs_;
  std::string identity_;
  Places places_;
};

// The ranges of reads: ascending, merged where they touch.
[[nodiscard]] std::vector<ByteRange> merged_ranges(std::vector<ByteRange> reads);

}  // namespace mariner::uvfs
