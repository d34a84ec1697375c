// The history as a storage node sees it whose image is being built anew: it was lost, or never
// there.
//
// What the log has given up stands in the images alone, which this one does not have yet: until it
// is built, what the history calls base comes from another storage node's image, and nothing that
// this image holds is anybody's base. What changed since the beginning is what is stored at all.
//
// Invariant: once the image is built, it holds whatever the history calls base, as any other does.
// A block that is given something else than its base has it logged before, out of the other image:
// that may not have got as far, and only there it stands. So nothing is to be remembered about a
// block, neither when the image is built nor behind a restart, and this passes everything on.
// An image of an earlier version may be otherwise: while that is being looked at (base_check.h),
// whatever the history calls base is kUnavailable.
//
// Owner's thread only; nothing may be under way when it is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "server/volume/history_reader.h"

namespace mariner::cluster {

// What this image holds of what the history calls base.
enum class HeldBase : std::uint8_t {
  kNone,  // it is being built
  kUnknown,
  kAll,
};

class RebuildingHistory final : public volume::History {
 public:
  using Holds = std::function<HeldBase()>;

  // `below` and `other` outlive it. `other`: the image of another node; null: there is none.
  RebuildingHistory(volume::History& below, volume::Base* other, BlockCount blocks, Holds holds);

  void locate(std::vector<Lookup> lookups, LocateDone done) override;
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override;
  void changed(SequenceNumber from, SequenceNumber to, Portion portion, volume::Done done) override;
  void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) override {
    below_.versions(std::move(blocks), to, std::move(done));
  }
  void hold(SequenceNumber at, HoldDone done) override { below_.hold(at, std::move(done)); }
  void log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) override;
  void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) override {
    below_.moment(asked, std::move(done));
  }
  void summarize(const volume::HistorySummary::Question& question, SummaryDone done) override {
    below_.summarize(question, std::move(done));
  }

  [[nodiscard]] bool idle() const { return reader_ == nullptr || reader_->in_flight() == 0; }

 private:
  // What is stored is looked up in such parts.
  static constexpr std::uint64_t kScanBlocks = 65'536;  // 256 MiB

  struct Scan;
  struct Fetch;
  void scan(const std::shared_ptr<Scan>& scan);
  static void take(const std::vector<Lookup>& lookups, Located found, Fetch& whole);
  void fetch(const std::shared_ptr<Fetch>& fetch, std::size_t run, SequenceNumber at);

  volume::History& below_;
  volume::Base* const other_;
  const std::unique_ptr<volume::HistoryReader> reader_;  // null: there is no other image
  const BlockCount blocks_;
  const Holds holds_;
};

}  // namespace mariner::cluster
