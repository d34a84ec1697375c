// A file system that a test writes to, block by block; each is a write of its history.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "ifsck/block_map.h"
#include "ifsck/directory_block.h"
#include "ifsck/ext_inode.h"
#include "ifsck/write_trace.h"
#include "tests/ifsck/made_volume.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::uvfs {

class MadeWrites {
 public:
  static constexpr std::uint64_t kSecond = 1'000'000'000;

  // A kind of those that MadeImage makes.
  explicit MadeWrites(const std::string& options)
      : volume(options),
        trace_(
            ifsck::TraceWriter::create(folder_.file("trace"), ifsck::MadeImage::kBytes).value()) {}

  // What was put into the volume since, in the order in which it was, a second later each.
  SequenceNumber flush() {
    const auto& writes = volume.overlay.writes();
    for (; flushed_ < writes.size(); ++flushed_) {
      const auto* const block = volume.overlay.find(writes[flushed_]);
      last_ = trace_.write(VersionTime{last_.value * kSecond + kSecond}, writes[flushed_], *block)
                  .value();
    }
    return last_;
  }
  template <typename T>
  SequenceNumber put(ifsck::InodeNumber inode, std::uint64_t at, T value) {
    volume.put(inode, at, value);
    return flush();
  }
  // A mode, as chmod() does it: with the time of change, by one write.
  SequenceNumber set_mode(ifsck::InodeNumber inode, std::uint16_t mode) {
    auto bytes = volume.inode(inode);
    ifsck::put_field(bytes, ifsck::InodeAt::kMode, mode);
    ifsck::put_field(bytes, ifsck::InodeAt::kChanged, static_cast<std::uint32_t>(last_.value + 1));
    EXPECT_TRUE(volume.view->write(volume.layout->inode_place(inode), bytes).has_value());
    return flush();
  }
  template <typename T>
  SequenceNumber put(std::uint64_t offset, T value) {
    volume.put(offset, value);
    return flush();
  }
  [[nodiscard]] ifsck::TracePast past() {
    return ifsck::TracePast::open(volume.image(), folder_.file("trace")).value();
  }
  [[nodiscard]] std::uint64_t offset_of(ifsck::FsBlock block) const {
    return volume.layout->bytes_of(block).offset;
  }
  [[nodiscard]] ifsck::BlockMap map_of(ifsck::InodeNumber number) {
    return ifsck::map_blocks(*volume.volume, *volume.layout, number, volume.inode(number)).value();
  }

  // Where the inode number of an entry stands.
  std::uint64_t place_of(ifsck::InodeNumber directory, const std::string& name) {
    for (const auto& run : map_of(directory).runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        std::vector<std::byte> block(volume.layout->block_bytes());
        const std::uint64_t offset = offset_of(run.physical + i);
        EXPECT_TRUE(volume.view->read({offset, block.size()}, block).has_value());
        std::uint64_t found = 0;
        (void)ifsck::for_each_entry(block, [&](const ifsck::DirectoryEntry& each) {
          if (each.inode != 0 && each.name == name) found = offset + each.offset;
        });
        if (found != 0) return found;
      }
    }
    ADD_FAILURE() << name;
    return 0;
  }

  ifsck::MadeVolume volume;

 private:
  logging::test::TemporaryDirectory folder_;
  ifsck::TraceWriter trace_;
  std::size_t flushed_ = 0;
  SequenceNumber last_;
};

}  // namespace mariner::uvfs
