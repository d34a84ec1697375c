// A view on top of another one: what is written to it is kept all at once, or not at all.
#pragma once

#include <vector>

#include "ifsck/view.h"

namespace mariner::ifsck {

class Draft {
 public:
  // `under` outlives it, and is not written to meanwhile.
  explicit Draft(View& under) : past_(under), view_(past_, under.at(), overlay_) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  [[nodiscard]] View& view() { return view_; }
  // Puts what was written into the overlay of the view below.
  void keep() {
    overlay_.for_each(
        [this](Lbn lbn, const Overlay::Block& block) { past_.under.overlay().put(lbn, block); });
  }

 private:
  // Of one moment: that of the view.
  struct Under final : public Past {
    explicit Under(View& view) : under(view) {}
    [[nodiscard]] std::uint64_t size_bytes() const override { return under.size_bytes(); }
    Result<Reach> reach() override { return Reach{under.at(), under.at()}; }
    Result<SequenceNumber> moment_of(VersionTime /*time*/) override { return under.at(); }
    Result<VersionTime> time_of(SequenceNumber /*sequence*/) override { return VersionTime{}; }
    Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
      std::vector<Lbn> blocks;
      for (const Question& each : questions) blocks.push_back(each.block);
      if (const Result<void> fetched = under.prefetch(blocks); !fetched) return fetched;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const auto read = under.read({blocks[i].byte_offset(), kBlockBytes},
                                     to.subspan(i * kBlockBytes, kBlockBytes));
        if (!read) return read;
      }
      return {};
    }
    Result<std::vector<BlockRange>> changed(SequenceNumber /*from*/,
                                            SequenceNumber /*to*/) override {
      return std::vector<BlockRange>{};
    }
    Result<std::vector<Version>> versions(std::span<const Lbn> /*blocks*/, SequenceNumber /*from*/,
                                          SequenceNumber /*to*/) override {
      return std::vector<Version>{};
    }
    View& under;
  };

  Under past_;
  Overlay overlay_;
  View view_;
};

}  // namespace mariner::ifsck
