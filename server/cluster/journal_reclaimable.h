// A storage node's journal as the reclaimer sees it: what this node's image holds durably, and what
// came before a moment that is held (volume::History::hold), may go at once. So it is empty again
// soon after the volume's logger is back, and nobody has to say so.
//
// It depends on nothing that a restart forgets: what the image lacks stays until it is known to be
// needed or not. Owner's thread only.
#pragma once

#include <functional>
#include <utility>

#include "server/cluster/logger_part.h"

namespace mariner::cluster {

class JournalReclaimable final : public volume::Reclaimable {
 public:
  // How far this node's image is durable.
  using ImageDurable = std::function<SequenceNumber()>;

  // `journal` outlives it.
  JournalReclaimable(LoggerPart& journal, ImageDurable image_durable)
      : journal_(journal), image_durable_(std::move(image_durable)) {}

  [[nodiscard]] volume::LoggedVolume& logged() override { return journal_.logged(); }
  [[nodiscard]] SequenceNumber settled() const override { return journal_.settled(); }
  [[nodiscard]] bool has_image() const override { return true; }
  // (As coordinators have said: the other image may be behind this node's.)
  [[nodiscard]] SequenceNumber durable() const override { return journal_.durable(); }
  [[nodiscard]] std::optional<SequenceNumber> oldest_pinned() const override;
  [[nodiscard]] std::optional<SequenceNumber> spare_through() const override;
  void hurry() override {}
  void punch(std::vector<BlockRange> ranges, volume::Done done) override;

 private:
  LoggerPart& journal_;
  const ImageDurable image_durable_;
};

}  // namespace mariner::cluster
