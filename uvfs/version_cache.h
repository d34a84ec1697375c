// What blocks held at moments of a stretch, kept by version: a block that was not written between
// two moments is read once for both.
//
// What is going to be read is best said beforehand, for all moments at once. One thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "uvfs/block_timelines.h"

namespace mariner::uvfs {

class VersionCache final : public ifsck::Past {
 public:
  // Beyond them, all that is kept is forgotten: 64 MiB.
  static constexpr std::size_t kBlocksMax = 16 * 1024;

  // `timelines` outlive it. Moments are those of their stretch.
  explicit VersionCache(BlockTimelines& timelines) : timelines_(timelines) {}

  // Errors of all: of the past; kLimit: of BlockTimelines::load().
  [[nodiscard]] Result<void> prefetch(std::span<const Question> questions);
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override;

  // As the past says.
  [[nodiscard]] std::uint64_t size_bytes() const override;
  [[nodiscard]] Result<Reach> reach() override;
  [[nodiscard]] Result<SequenceNumber> moment_of(VersionTime time) override;
  [[nodiscard]] Result<VersionTime> time_of(SequenceNumber sequence) override;
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override;
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override;

 private:
  using Key = std::pair<Lbn, SequenceNumber>;  // a block, and the write that it is as of

  [[nodiscard]] Key key_of(const Question& question) const;

  BlockTimelines& timelines_;
  std::map<Key, std::unique_ptr<ifsck::Overlay::Block>> blocks_;
};

}  // namespace mariner::uvfs
