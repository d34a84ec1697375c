// A past that counts what it is asked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ifsck/past_behind.h"

namespace mariner::uvfs {

class CountedPast : public ifsck::PastBehind {
 public:
  using PastBehind::PastBehind;
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    ++reads;
    blocks += questions.size();
    return PastBehind::read(questions, to);
  }
  Result<std::vector<Version>> versions(std::span<const Lbn> of, SequenceNumber from,
                                        SequenceNumber to) override {
    ++others;
    return PastBehind::versions(of, from, to);
  }
  Result<std::vector<BlockRange>> changed(SequenceNumber from, SequenceNumber to) override {
    ++others;
    return PastBehind::changed(from, to);
  }
  Result<SequenceNumber> first_break(SequenceNumber from, SequenceNumber to) override {
    ++others;
    return PastBehind::first_break(from, to);
  }
  Result<VersionTime> time_of(SequenceNumber sequence) override {
    ++others;
    return PastBehind::time_of(sequence);
  }

  std::uint64_t reads = 0;
  std::uint64_t blocks = 0;  // that were read
  std::uint64_t others = 0;  // other questions
};

}  // namespace mariner::uvfs
