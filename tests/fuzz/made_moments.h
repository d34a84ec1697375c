// An image, and moments at which blocks of it were written, for fuzzers: in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ifsck/past.h"
#include "proto/check.h"

namespace mariner::ifsck {

// Moment 0 is the image, which outlives it; a second lies between each and the next.
class MadeMoments final : public Past {
 public:
  using Block = std::array<std::byte, kBlockBytes>;
  using Blocks = std::map<Lbn, Block>;

  MadeMoments(const std::string& image, std::size_t moments) : at(moments), image_(image) {}
  std::vector<Blocks> at;  // [i]: written at moment i + 1

  [[nodiscard]] std::uint64_t size_bytes() const override { return image_.size(); }
  Result<Reach> reach() override { return Reach{{0}, {at.size()}}; }
  Result<SequenceNumber> moment_of(VersionTime time) override {
    return SequenceNumber{std::min<std::uint64_t>(time.ns / 1'000'000'000, at.size())};
  }
  Result<VersionTime> time_of(SequenceNumber sequence) override {
    return VersionTime{sequence.value * 1'000'000'000};
  }
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const Block block = block_of(questions[i].block, questions[i].at);
      std::ranges::copy(block, to.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
    }
    return {};
  }
  Result<std::vector<BlockRange>> changed(SequenceNumber from, SequenceNumber to) override {
    Blocks all;
    for (std::uint64_t moment = from.value; moment < to.value; ++moment) {
      all.insert(at[moment].begin(), at[moment].end());
    }
    std::vector<BlockRange> ranges;
    for (const auto& [lbn, block] : all) {
      if (!ranges.empty() && ranges.back().end() == lbn) {
        ++ranges.back().count.value;
      } else {
        ranges.push_back({lbn, BlockCount{1}});
      }
    }
    return ranges;
  }
  Result<std::vector<Version>> versions(std::span<const Lbn> blocks, SequenceNumber from,
                                        SequenceNumber to) override {
    std::vector<Version> all;
    for (const Lbn lbn : blocks) {
      for (std::uint64_t moment = from.value; moment < to.value; ++moment) {
        if (!at[moment].contains(lbn)) continue;
        const SequenceNumber sequence{moment + 1};
        all.push_back({lbn, sequence, time_of(sequence).value()});
      }
    }
    return all;
  }

  [[nodiscard]] Block block_of(Lbn lbn, SequenceNumber moment) const {
    for (std::uint64_t i = moment.value; i > 0; --i) {
      const auto found = at[i - 1].find(lbn);
      if (found != at[i - 1].end()) return found->second;
    }
    Block block;
    CHECK(lbn.byte_offset() + kBlockBytes <= image_.size());
    const auto bytes = std::as_bytes(std::span(image_)).subspan(lbn.byte_offset(), kBlockBytes);
    std::ranges::copy(bytes, block.begin());
    return block;
  }
  void put(std::size_t moment, std::uint64_t offset, std::byte byte) {
    const Lbn lbn{offset / kBlockBytes};
    auto& block = at[moment].try_emplace(lbn, block_of(lbn, {moment + 1})).first->second;
    block[offset % kBlockBytes] = byte;
  }

 private:
  const std::string& image_;
};

}  // namespace mariner::ifsck
