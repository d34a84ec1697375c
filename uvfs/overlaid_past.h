// A past of which one moment has some blocks otherwise: those that a replay, or repairs, left.
#pragma once

#include <algorithm>
#include <span>

#include "ifsck/overlay.h"
#include "ifsck/past_behind.h"

namespace mariner::uvfs {

// Questions are of that moment, whatever they say. One thread.
class OverlaidPast final : public ifsck::PastBehind {
 public:
  // Both outlive it.
  OverlaidPast(ifsck::Past& past, const ifsck::Overlay& overlay)
      : PastBehind(past), overlay_(overlay) {}

  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override {
    if (auto read = behind().read(questions, to); !read) return read;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const ifsck::Overlay::Block* const other = overlay_.find(questions[i].block);
      if (other == nullptr) continue;
      std::ranges::copy(*other, to.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
    }
    return {};
  }

 private:
  const ifsck::Overlay& overlay_;
};

}  // namespace mariner::uvfs
