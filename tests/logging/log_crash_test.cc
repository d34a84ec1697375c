// Crashes of the log at random moments, judged by a model that remembers every record. A failure
// names its seed; MARINER_TEST_SEED=N runs that one alone, MARINER_TEST_SEEDS=N so many.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "logging/track_initialiser.h"
#include "logging/track_recycler.h"
#include "tests/logging/log_model.h"
#include "tests/logging/log_testing.h"
#include "tests/support/seeds.h"

namespace mariner::logging {
namespace {

using mariner::test::for_seeds;
using test::BlockSpan;
using test::FaultyDisk;
using test::kTrackBytes;
using test::LogModel;
using test::LogRig;
using test::Visited;
using Remains = FaultyDisk::Remains;
using Urgency = LogWriter::Urgency;

// One history of a log from its seed: lives with random load, each ended by a power cut.
class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed),
        // Every sixth seed writes large records and so meets the ends of tracks and of the log.
        large_(seed % 6 == 0),
        disk_errors_(seed % 3 == 0),
        rig_({.seed = seed,
              .tracks = 4 + seed % 2,
              .delay_max = std::chrono::microseconds(seed % 5 == 0 ? 0 : 200),
              .writer = {.batch_bytes_max = seed % 2 == 0 ? 1u << 20 : 64u << 10}}) {}

  // What is wrong, or nothing.
  std::string run() {
    const std::uint64_t lives = 2 + below(4);
    for (std::uint64_t life = 0; life <= lives; ++life) {
      if (!rig_.open(below(3) == 0 ? 2 : 0)) return "recovery fails";
      if (std::string wrong = model_.judge(rig_); !wrong.empty()) {
        return "life " + std::to_string(life) + ": " + wrong;
      }
      remember_sequences();
      if (life < lives) live();
    }
    return {};
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  void remember_sequences() {
    sequences_.clear();
    for (const Visited& v : rig_.visited) {
      std::uint64_t& last = sequences_[v.record.volume.value];
      last = std::max(last, v.record.sequence.value);
    }
    highest_ = 0;
    for (const auto& [volume, last] : sequences_) highest_ = std::max(highest_, last);
  }

  Record any_record() {
    const auto volume = static_cast<std::uint32_t>(1 + below(3));
    // Another life writes other bytes under other numbers, so that old ones cannot pass for new.
    std::uint64_t& sequence = sequences_[volume];
    sequence = std::max(sequence, highest_) + 1;
    Record r = test::record_of(volume, sequence, any_length());
    r.epoch = Epoch{1 + below(3)};
    r.frontier = SequenceNumber{below(sequence)};
    r.settled = SequenceNumber{below(sequence)};
    switch (below(10)) {
      case 0:
        r.type = RecordType::kZero;
        r.flags = below(2) == 0 ? 0 : static_cast<std::uint16_t>(kHasHead | kHasTail);
        r.extent.count = BlockCount{3 + below(1u << 20)};
        r.payload_blocks = r.flags == 0 ? 0 : 2;
        break;
      case 1:
        r.flags = kRepeats | kHasTail;
        r.extent.count = BlockCount{2 + below(1u << 20)};
        r.payload_blocks = 2;
        break;
      case 2: r.type = RecordType::kBeforeImage; break;
      case 3:
        r.type = below(2) == 0 ? RecordType::kVoid : RecordType::kRollback;
        r.extent = {};
        r.payload_blocks = 0;
        r.target_sequence = SequenceNumber{r.type == RecordType::kVoid ? sequence : sequence - 1};
        break;
      default: break;
    }
    return r;
  }

  std::uint32_t any_length() {
    if (large_ && below(3) == 0) return static_cast<std::uint32_t>(256 + below(769));
    return static_cast<std::uint32_t>(1 + below(below(4) == 0 ? 40 : 4));
  }

  void append() {
    const Record record = any_record();
    const Urgency urgency = record.type == RecordType::kWrite || record.type == RecordType::kZero
                                ? Urgency::kOrdinary
                                : Urgency::kEssential;
    const std::size_t number = model_.appended(record);
    rig_.writer->append(
        record, test::whole(test::payload_of(record.sequence.value, record.payload_blocks)),
        urgency, [this, number](const Result<LoggedAt>& result) {
          if (powerless_) return;  // nobody is left to be told
          if (result) {
            model_.acknowledged(number, result->location);
          } else {
            model_.answered(number, rig_.writer->failed() ? LogModel::State::kFailed
                                                          : LogModel::State::kRefused);
          }
        });
  }

  // Frees some of the oldest tracks.
  void release(TrackRecycler& recycler) {
    const std::uint64_t oldest = rig_.tracks->oldest();
    const std::uint64_t current = rig_.log_disk->current_allocation();
    if (!recycler.idle() || current <= oldest) return;
    const std::uint64_t until = oldest + 1 + below(current - oldest);
    std::vector<BlockSpan> spans;
    for (std::uint64_t a = oldest; a < until; ++a) {
      if (const auto track = rig_.tracks->track(a)) {
        const std::uint64_t first = rig_.superblock.track_first_sector(*track);
        spans.push_back({first, first + rig_.superblock.track_sectors});
        model_.released(spans.back(), LogModel::State::kReleased);
      }
    }
    recycler.release(until, [this, spans](const Result<void>& result) {
      if (!result || powerless_) return;
      for (const BlockSpan& span : spans) model_.released(span, LogModel::State::kGone);
    });
  }

  // Load, then the power cut at a random moment of it.
  void live() {
    powerless_ = false;
    std::unique_ptr<TrackInitialiser> initialiser;
    if (below(6) == 0) {
      initialiser = std::make_unique<TrackInitialiser>(*rig_.log_disk, rig_.executor,
                                                       rig_.superblock, *rig_.writer);
      rig_.writer->set_track_gate([raw = initialiser.get()](std::uint8_t, std::uint64_t track) {
        return raw->may_write(track);
      });
      initialiser->start();
    }
    TrackRecycler recycler(*rig_.log_disk, *rig_.tracks, *rig_.writer);
    rig_.writer->set_full_gate([&recycler] { return !recycler.idle(); });
    const std::uint64_t steps = below(40);
    for (std::uint64_t step = 0; step < steps; ++step) {
      switch (below(4)) {
        case 0:
          for (std::uint64_t i = below(6); i > 0; --i) append();
          break;
        case 1: append(); break;
        case 2:
          if (below(4) == 0) release(recycler);
          rig_.executor.turn();
          break;
        default: rig_.executor.advance(std::chrono::microseconds(below(150))); break;
      }
      if (disk_errors_ && below(20) == 0) {
        rig_.disk.fail_writes(1 + below(8) / 7, static_cast<Remains>(below(3)));
      }
    }
    rig_.disk.cut_power();
    powerless_ = true;
    if (initialiser) initialiser->stop();
    rig_.executor.run_until_idle();
    rig_.writer->set_track_gate(nullptr);
    initialiser.reset();
    rig_.writer->set_full_gate(nullptr);
    rig_.close();
    rig_.disk.restore_power();
    rig_.disk.fail_writes(0, Remains::kNothing);
  }

  std::mt19937_64 random_;
  const bool large_;
  const bool disk_errors_;
  LogRig rig_;
  LogModel model_;
  std::map<std::uint32_t, std::uint64_t> sequences_;  // the last of each volume
  std::uint64_t highest_ = 0;
  bool powerless_ = false;
};

TEST(LogCrash, EveryAcknowledgedRecordSurvivesAndNothingAppearsHalf) {
  for_seeds(2000, [](std::uint64_t seed) {
    History history(seed);
    EXPECT_EQ(history.run(), "");
  });
}

// One log, damaged in random places: what is reported and what is read.
void damage_log(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  LogRig rig({.seed = seed});
  ASSERT_TRUE(rig.open());
  std::map<std::uint64_t, Record> appended;
  for (std::uint64_t sequence = 1; sequence <= 30 + below(40); ++sequence) {
    const Record record = test::record_of(1, sequence, static_cast<std::uint32_t>(1 + below(6)));
    appended[sequence] = record;
    rig.append(record);
    if (below(3) > 0) rig.executor.run_until_idle();
  }
  rig.executor.run_until_idle();
  const std::uint64_t used = rig.writer->used_bytes();
  for (std::uint64_t hits = 1 + below(5); hits > 0; --hits) {
    const std::uint64_t at = kReservedBytes + below(used);
    const std::uint64_t other = kReservedBytes + below(used);
    switch (below(3)) {
      case 0: rig.disk.flip_bit(at, static_cast<unsigned>(below(8))); break;
      case 1: rig.disk.overwrite(at / 512 * 512, std::vector<std::byte>(512)); break;
      default:  // a block of the log where another belongs
        rig.disk.overwrite(at / 4096 * 4096, rig.disk.bytes({other / 4096 * 4096, 4096}));
        break;
    }
  }
  rig.close();
  ASSERT_TRUE(rig.open());
  // What is visited is what was appended; its bytes are right or kCorrupt.
  std::uint64_t before = 0;
  std::set<std::uint64_t> seen;
  for (const Visited& v : rig.visited) {
    const std::uint64_t sequence = v.record.sequence.value;
    ASSERT_GT(sequence, before) << "order";
    before = sequence;
    ASSERT_TRUE(appended.contains(sequence));
    ASSERT_EQ(v.record.extent, appended[sequence].extent);
    seen.insert(sequence);
    const Result<void> read = rig.verify(v.record, v.location);
    if (!read) {
      ASSERT_EQ(read.error().code, ErrorCode::kCorrupt);
    }
  }
  // What is missing before something that is there has been reported. (Behind the last whole batch
  // damage cannot be told from a torn end: FORMAT.md section 5.)
  std::size_t missing = 0;
  for (const auto& [sequence, record] : appended) {
    missing += sequence < before && !seen.contains(sequence) ? 1 : 0;
  }
  if (missing > 0) {
    EXPECT_FALSE(rig.recovered.damage.empty()) << missing << " records are missing";
  }
  // And the log goes on.
  EXPECT_TRUE(rig.append_now(test::record_of(1, 1000)).has_value());
  rig.close();
  ASSERT_TRUE(rig.open());
  ASSERT_FALSE(rig.visited.empty());
  EXPECT_EQ(rig.visited.back().record.sequence.value, 1000u);
}

TEST(LogCrash, DamageIsReportedAndNeverReadAsData) { for_seeds(600, damage_log); }

}  // namespace
}  // namespace mariner::logging
