// A volume as of one moment, with the repairs that were made to it: what the checker reads and
// writes, byte by byte.
//
// Blocks that were read are kept; what is going to be read is best said beforehand, all at once
// (prefetch()). Beyond `cached_blocks_max` the cache is emptied. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ifsck/overlay.h"
#include "ifsck/past.h"

namespace mariner::ifsck {

class View {
 public:
  struct Options {
    std::size_t cached_blocks_max = 64 * 1024;  // 256 MiB
    std::size_t questions_max = 2048;           // asked for at a time
  };
  // Of the past, ever.
  struct Counters {
    std::uint64_t blocks_read = 0;
    std::uint64_t questions = 0;  // ways there and back
  };

  // Both outlive it.
  View(Past& past, SequenceNumber at, Overlay& overlay, const Options& options)
      : past_(past), at_(at), overlay_(overlay), options_(options) {}
  View(Past& past, SequenceNumber at, Overlay& overlay) : View(past, at, overlay, Options{}) {}

  // What differs between this moment and another one is known: all other blocks are read there, so
  // that they are read once. `changed` is ascending; so is what the other one's overlay has in it.
  // `other` outlives this one's use.
  void share(View& other, std::vector<BlockRange> changed) {
    other_ = &other;
    changed_ = std::move(changed);
  }
  void share_nothing() { other_ = nullptr; }

  // Blocks behind the end are left out.
  [[nodiscard]] Result<void> prefetch(std::span<const Lbn> blocks);

  struct Wish {
    View* view = nullptr;
    std::vector<Lbn> blocks;
  };
  // The same of several, together.
  [[nodiscard]] static Result<void> prefetch_all(std::span<const Wish> wishes);

  // kInvalidArgument: beyond the end.
  [[nodiscard]] Result<void> read(ByteRange range, std::span<std::byte> to);
  // To the overlay. kInvalidArgument: beyond the end.
  [[nodiscard]] Result<void> write(ByteRange range, std::span<const std::byte> from);

  [[nodiscard]] std::uint64_t size_bytes() const { return past_.size_bytes(); }
  [[nodiscard]] SequenceNumber at() const { return at_; }
  [[nodiscard]] Overlay& overlay() { return overlay_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  [[nodiscard]] Result<void> check(ByteRange range, std::size_t bytes) const;
  // A block that is to be asked for, and whose cache it goes to.
  struct Wanted {
    View* view = nullptr;
    Lbn block;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  void want(std::span<const Lbn> blocks, std::vector<Wanted>& wanted);
  void make_room(std::size_t blocks);
  static Result<void> fetch(std::vector<Wanted> all);

  // Whether it is the same at the other moment.
  [[nodiscard]] bool is_shared(Lbn lbn) const;
  // Good until something else is read.
  [[nodiscard]] Result<const Overlay::Block*> block(Lbn lbn);

  Past& past_;
  const SequenceNumber at_;
  Overlay& overlay_;
  const Options options_;
  // Blocks stand as they came, many in one piece.
  std::vector<std::shared_ptr<const Overlay::Block[]>> pieces_;
  std::unordered_map<std::uint64_t, const Overlay::Block*> cache_;
  Counters counters_;
  View* other_ = nullptr;
  std::vector<BlockRange> changed_;
};

}  // namespace mariner::ifsck
