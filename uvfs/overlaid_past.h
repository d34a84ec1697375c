// A past of which one moment has some blocks otherwise: those that a replay, or repairs, left.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ifsck/overlay.h"
#include "ifsck/past.h"

namespace mariner::uvfs {

// Questions are of that moment, whatever they say. One thread.
class OverlaidPast final : public ifsck::Past {
 public:
  // Both outlive it.
  OverlaidPast(ifsck::Past& past, const ifsck::Overlay& overlay) : past_(past), overlay_(overlay) {}

  [[nodiscard]] std::uint64_t size_bytes() const override { return past_.size_bytes(); }
  [[nodiscard]] Result<Reach> reach() override { return past_.reach(); }
  [[nodiscard]] Result<SequenceNumber> moment_of(VersionTime time) override {
    return past_.moment_of(time);
  }
  [[nodiscard]] Result<VersionTime> time_of(SequenceNumber sequence) override {
    return past_.time_of(sequence);
  }
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override {
    if (auto read = past_.read(questions, to); !read) return read;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const ifsck::Overlay::Block* const other = overlay_.find(questions[i].block);
      if (other == nullptr) continue;
      std::ranges::copy(*other, to.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
    }
    return {};
  }
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override {
    return past_.changed(from, to);
  }
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override {
    return past_.versions(blocks, from, to);
  }

 private:
  ifsck::Past& past_;
  const ifsck::Overlay& overlay_;
};

}  // namespace mariner::uvfs
