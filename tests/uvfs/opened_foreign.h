// A file system that libtsk reads, of an image as it is.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/uvfs/made_foreign.h"
#include "uvfs/tsk_file_system.h"

namespace mariner::uvfs {

class OpenedForeign {
 public:
  explicit OpenedForeign(MadeForeign& made, std::optional<TskFileSystem::Kind> kind = {})
      : at_(made.flush()), past_(made.past()), image_(past_.size_bytes(), fetch()) {
    auto opened = TskFileSystem::open(image_, kind, &read_by);
    if (opened) files = std::move(*opened);
    if (!opened) error = opened.error();
  }

  TskFileSystem::Look look(ObjectNumber number) { return files->look(number).value(); }
  std::map<std::string, ObjectNumber> names(ObjectNumber directory) {
    std::map<std::string, ObjectNumber> all;
    for (const TskName& each : look(directory).names) all.emplace(each.name, each.number);
    return all;
  }
  TskFileSystem::Look find(const std::string& name) { return look(names(files->root()).at(name)); }
  // By what it is read if it is opened once more.
  std::vector<ByteRange> opened_again_by(TskFileSystem::Kind kind) {
    std::vector<ByteRange> all;
    EXPECT_TRUE(TskFileSystem::open(image_, kind, &all).has_value());
    return all;
  }
  // What is read for it.
  std::vector<ByteRange> read_for(ObjectNumber number) {
    std::vector<ByteRange> reads;
    EXPECT_TRUE(files->forget().has_value());
    image_.record(&reads);
    (void)look(number);
    image_.record(nullptr);
    return merged_ranges(std::move(reads));
  }
  std::string bytes(const ByteRuns& runs) {
    std::string all;
    for (const ByteRun& each : runs) {
      const BlockRange range = ByteRange{each.place, each.bytes}.covering_blocks();
      std::vector<std::byte> blocks(range.count.bytes());
      EXPECT_TRUE(fetch()(range, blocks).has_value());
      all.resize(each.logical);
      all.append(
          reinterpret_cast<const char*>(blocks.data()) + (each.place - range.first.byte_offset()),
          each.bytes);
    }
    return all;
  }

  std::vector<ByteRange> read_by;
  std::unique_ptr<TskFileSystem> files;
  Error error;

 private:
  TskImage::Fetch fetch() {
    return [this](BlockRange blocks, std::span<std::byte> to) {
      std::vector<ifsck::Past::Question> questions;
      for (Lbn lbn = blocks.first; lbn < blocks.end(); lbn = lbn + BlockCount{1}) {
        questions.push_back({lbn, at_});
      }
      return past_.read(questions, to);
    };
  }

  const SequenceNumber at_;
  ifsck::TracePast past_;
  TskImage image_;
};

}  // namespace mariner::uvfs
