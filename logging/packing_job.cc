#include "logging/packing_job.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "logging/pack_builder.h"
#include "logging/pack_extents.h"
#include "logging/pack_verification.h"
#include "logging/packed_tracks.h"
#include "logging/track_verifier.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

// The tracks as they stand in their slots.
class SlotSource final : public PackSource {
 public:
  explicit SlotSource(const PackingJob& job) : job_(job) {}

  Result<void> read(std::size_t track, std::uint64_t offset, std::span<std::byte> to) override {
    const Superblock& superblock = job_.live.superblock;
    const std::uint64_t number = job_.live.tracks[job_.tracks[track]].track;
    return job_.disk->read(superblock.track_first_sector(number) * superblock.sector_bytes + offset,
                           to);
  }

 private:
  const PackingJob& job_;
};

PackingFailure failed(Error error) {
  return {PackingFailure::What::kError, std::move(error), 0, {}};
}

// What stands where in the track; its last record's time.
struct Contents {
  PackTrack track;
  VersionTime youngest{};
};

Contents contents_of(const CompleteTrack& complete, const Superblock& superblock,
                     std::uint64_t number) {
  const std::uint64_t begin = superblock.track_first_sector(number);
  Contents out;
  out.track.bytes = superblock.track_bytes();
  for (const auto& [record, location] : complete.records) {
    const std::uint64_t at = (location.payload_sector() - begin) * superblock.sector_bytes;
    const std::uint64_t header_end =
        (location.batch_sector - begin + location.header_sectors) * superblock.sector_bytes;
    const std::uint64_t end = at + std::uint64_t{record.payload_blocks} * kBlockBytes;
    out.track.used = std::max({out.track.used, header_end, end});
    out.youngest = std::max(out.youngest, record.time);
    if (record.payload_blocks == 0) continue;
    const bool plain = record.payload_blocks == record.extent.count.value;
    out.track.payloads.push_back({static_cast<std::uint32_t>(at), record.payload_blocks,
                                  record.volume, plain ? record.extent.first.value : kNoBlock});
  }
  std::ranges::sort(out.track.payloads, {}, &PackBlocks::at);
  return out;
}

class Packing {
 public:
  Packing(const PackingJob& job, const PackPause& pause, Beside* beside)
      : job_(job), pause_(pause), beside_(beside), source_(job) {}

  PackingResult run() {
    if (auto failure = read_contents()) return *std::move(failure);
    PackingResult result = build(true);
    if (!result && differs_) result = build(false);
    // What stands in the slot is not what was written there.
    if (!result && differs_ && damaged_) {
      result = PackingFailure{PackingFailure::What::kDamaged, result.error().error, *damaged_, {}};
    }
    if (!result) job_.disk->end_building();
    return result;
  }

 private:
  std::optional<PackingFailure> read_contents() {
    // What was withdrawn stands there, too.
    LiveTracks live = job_.live;
    live.withdrawn = {};
    for (const std::size_t number : job_.tracks) {
      if (Result<void> r = pause_(); !r) return failed(r.error());
      const Result<CompleteTrack> complete = read_live_track(live, number);
      if (!complete) return failed(complete.error());
      Contents contents = contents_of(*complete, live.superblock, live.tracks[number].track);
      if (!complete->damage.empty()) {
        return PackingFailure{PackingFailure::What::kDamaged,
                              {ErrorCode::kCorrupt, complete->damage.front().what},
                              number,
                              {}};
      }
      if (contents.youngest >= job_.cold_before) {
        return PackingFailure{PackingFailure::What::kTooYoung, {}, number, contents.youngest};
      }
      used_bytes_ += contents.track.used;
      packed_.push_back({live.tracks[number].track, live.tracks[number].allocation,
                         complete->end_batch, contents.track.used});
      tracks_.push_back(std::move(contents.track));
    }
    return std::nullopt;
  }

  PackingResult build(bool deduplicate) {
    job_.disk->end_building();
    differs_ = false;
    PackExtents sink(
        *job_.disk,
        {static_cast<std::uint64_t>(static_cast<double>(used_bytes_) * job_.packed_part_max),
         job_.leave_slots},
        beside_);
    const PackOptions options{
        .level = job_.level, .deduplicate = deduplicate, .pause = pause_, .beside = beside_};
    Packed out;
    out.used_bytes = used_bytes_;
    Result<BuiltPack> built = build_pack(tracks_, source_, sink, options);
    Result<void> written = built ? Result<void>{} : Result<void>(built.error());
    if (written) {
      out.place.table_at = sink.bytes();
      const std::vector<std::byte> bytes = to_bytes(built->table);
      out.place.table_bytes = static_cast<std::uint32_t>(bytes.size());
      written = sink.append(bytes);
    }
    if (written) written = sink.finish();
    if (!written) {
      PackingFailure failure = failed(written.error());
      if (failure.error.code == ErrorCode::kLimit) failure.what = PackingFailure::What::kNotSmaller;
      return failure;
    }
    out.place.extents = sink.extents();
    for (const std::size_t number : job_.tracks) {
      out.place.tracks.push_back(job_.live.tracks[number].track);
    }
    if (Result<void> r = verify(out.place, built->taken_as_equal); !r) return failed(r.error());
    return out;
  }

  // From the disk, with a table that was read from there, too.
  Result<void> verify(const PackPlace& place, std::span<const TakenAsEqual> taken_as_equal) {
    PackShelf shelf = job_.disk->new_shelf(PackShelf::Reads::kInOrder);
    const Result<std::shared_ptr<const PackReader>> reader = shelf.open(place);
    if (!reader) return reader.error();
    Result<void> verified = verify(**reader, taken_as_equal);
    differs_ = !verified && verified.error().code == ErrorCode::kCorrupt;
    return verified;
  }

  Result<void> verify(const PackReader& reader, std::span<const TakenAsEqual> taken_as_equal) {
    if (!TrackVerifier::can_verify(job_.live.superblock)) {
      return verify_pack(tracks_, source_, reader, pause_);
    }
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      damaged_ = job_.tracks[i];
      Result<void> verified =
          verify_packed_track(job_.live.superblock, packed_[i], i, reader, pause_);
      if (!verified) return verified;
    }
    damaged_.reset();
    return verify_equal(tracks_, source_, reader, taken_as_equal, pause_);
  }

  const PackingJob& job_;
  const PackPause& pause_;
  Beside* const beside_;
  SlotSource source_;
  std::vector<PackTrack> tracks_;
  std::vector<PackedTrack> packed_;  // the same
  std::uint64_t used_bytes_ = 0;
  bool differs_ = false;
  std::optional<std::size_t> damaged_;  // of live.tracks, when it differs
};

}  // namespace

PackingResult pack_tracks(const PackingJob& job, const PackPause& pause, Beside* beside) {
  CHECK(!job.tracks.empty());
  return Packing(job, pause, beside).run();
}

}  // namespace mariner::logging
