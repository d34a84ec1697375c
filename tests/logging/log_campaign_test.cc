// The campaign against the log: from each seed one history of an array of one to four disks, solid
// and rotating, that lose power, lie, fail, hang, run full, are damaged, come and go.
//
// A failure names its seed. MARINER_TEST_SEED=N runs that one alone; MARINER_TEST_SEEDS=N so many,
// from MARINER_TEST_FIRST_SEED on. campaign.sh runs them on all processors.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include "tests/logging/campaign_model.h"
#include "tests/logging/campaign_rig.h"
#include "tests/support/seeds.h"

namespace mariner::logging {
namespace {

using std::chrono::microseconds;
using test::CampaignModel;
using test::CampaignRig;
using test::FaultyDisk;
using Remains = FaultyDisk::Remains;
using State = CampaignModel::State;
using Urgency = LogWriter::Urgency;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 300;
#else
constexpr std::uint64_t kSeeds = 3000;
#endif

struct Totals {
  CampaignModel::Counts counts;
  std::uint64_t lives = 0;
  std::uint64_t cuts_in_recovery = 0;
  std::uint64_t packed = 0;  // tracks
};

class Campaign {
 public:
  Campaign(std::uint64_t seed, Totals& totals)
      : random_(seed * 0x9e3779b97f4a7c15u),
        plan_(make_plan()),
        rig_(options(seed)),
        totals_(totals) {
    for (std::uint64_t i = 0; i < plan_.disks; ++i) add_disk();
  }

  // What is wrong, or nothing.
  std::string run() {
    const std::uint64_t lives = plan_.repeats ? 5 : 2 + below(3);
    for (std::uint64_t life = 0; life <= lives; ++life) {
      std::string wrong = open();
      if (wrong.empty()) wrong = model_.judge(rig_);
      if (wrong.empty() && life < lives) wrong = live();
      if (!wrong.empty()) return "life " + std::to_string(life) + ": " + wrong + describe();
      ++totals_.lives;
    }
    rig_.close();
    add_up();
    return {};
  }

 private:
  struct Plan {
    std::uint64_t disks = 1;
    std::uint64_t solid_of_4 = 0;  // how many of four disks do not rotate
    bool large = false;            // meets the ends of tracks by long records
    bool errors = false;
    bool hangs = false;
    bool capacity = false;
    bool lies = false;      // dropped and misdirected writes
    bool damage = false;    // between lives: of tracks
    bool metadata = false;  // the same of one copy of the superblock and of the allocation list
    bool repeats = false;   // short lives in which the host repeats what nobody answered
    bool members = false;   // disks come and go
    bool initialise = false;
    bool reclaims = false;
    bool packs = false;
  };

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  Plan make_plan() {
    Plan plan;
    plan.disks = std::min<std::uint64_t>(1 + below(4), 1 + below(4));
    const std::uint64_t media = below(8);
    plan.solid_of_4 = media < 3 ? 4 : media < 6 ? 0 : 2;
    plan.repeats = one_in(5);
    plan.large = one_in(12) && plan.disks <= 2;
    plan.errors = one_in(3);
    plan.hangs = one_in(3);
    plan.capacity = one_in(12);
    plan.lies = one_in(6);
    plan.damage = one_in(4);
    plan.metadata = !plan.damage && !plan.lies && one_in(8);
    plan.members = one_in(4);
    plan.initialise = plan.solid_of_4 == 0 ? one_in(3) : one_in(12);
    plan.reclaims = one_in(2);
    // What is damaged, or where a lie has put it, could not be told of packed tracks.
    plan.packs = !plan.damage && !plan.lies && !plan.metadata && one_in(2);
    return plan;
  }

  CampaignRig::Options options(std::uint64_t seed) {
    CampaignRig::Options options{.seed = seed};
    options.delay_max = microseconds(std::array{0, 200, 200, 1500}[below(4)]);
    options.writer.batch_bytes_max = std::array{16u << 10, 64u << 10, 1u << 20}[below(3)];
    options.writer.t_wait = microseconds(std::array{0, 200, 1000}[below(3)]);
    options.writer.t_fail = std::chrono::milliseconds(4);
    return options;
  }

  void add_disk() {
    if (below(4) >= plan_.solid_of_4) {
      rig_.add_disk(CampaignRig::Media::kRotating, 4 + below(3));
    } else if (plan_.packs) {
      rig_.add_disk(CampaignRig::Media::kSlotted, 6 + below(5));
    } else {
      rig_.add_disk(CampaignRig::Media::kSolid, 4 + below(3));
    }
  }
  CampaignRig::Slot& any_slot() { return *rig_.slots[below(rig_.slots.size())]; }

  // What a reader of a failure wants to know first.
  std::string describe() {
    std::string text;
    const std::pair<const char*, bool> parts[] = {
        {"long records", plan_.large},     {"errors", plan_.errors},     {"hangs", plan_.hangs},
        {"capacity", plan_.capacity},      {"lies", plan_.lies},         {"damage", plan_.damage},
        {"metadata", plan_.metadata},      {"repeats", plan_.repeats},   {"members", plan_.members},
        {"initialiser", plan_.initialise}, {"reclaims", plan_.reclaims}, {"packs", plan_.packs}};
    for (const auto& [name, is_on] : parts) text += is_on ? std::string("; ") + name : "";
    for (const auto& slot : rig_.slots) {
      text += "\ndisk " + std::to_string(slot->number) + (slot->rotates ? ", rotates" : "") +
              (slot->draining ? ", drains" : "") + ", next batch " +
              std::to_string(slot->next_batch);
      const std::uint64_t bytes = slot->shape.sector_bytes;
      const auto tell = [&](const char* what, ByteRange range) {
        text += std::string("; ") + what + " at sector " + std::to_string(range.offset / bytes) +
                ", " + std::to_string(range.length) + " bytes";
      };
      for (const ByteRange range : slot->damaged) tell("damage", range);
      for (const ByteRange range : slot->disk->lies()) tell("lie", range);
    }
    if (!rig_.recovered.damage.empty()) text += "\nreported: " + test::damage_text(rig_.recovered);
    return text;
  }

  // ---- records ----------------------------------------------------------------------------------

  Record any_record() {
    const std::uint64_t sequence = ++last_sequence_;
    Record r = test::record_of(static_cast<std::uint32_t>(1 + below(3)), sequence, any_length());
    r.epoch = Epoch{1 + below(3)};
    r.frontier = SequenceNumber{below(sequence)};
    r.settled = SequenceNumber{below(sequence)};
    switch (below(10)) {
      case 0:
        r.type = RecordType::kZero;
        r.flags = one_in(2) ? 0 : static_cast<std::uint16_t>(kHasHead | kHasTail);
        r.extent.count = BlockCount{3 + below(1u << 20)};
        r.payload_blocks = r.flags == 0 ? 0 : 2;
        break;
      case 1: r.type = RecordType::kBeforeImage; break;
      case 2:
        r.type = RecordType::kVoid;
        r.extent = {};
        r.payload_blocks = 0;
        r.target_sequence = r.sequence;
        break;
      default: break;
    }
    return r;
  }

  std::uint32_t any_length() {
    if (plan_.large && one_in(3)) return static_cast<std::uint32_t>(256 + below(769));
    return static_cast<std::uint32_t>(1 + below(one_in(4) ? 28 : 4));
  }

  void append() {
    const Record record = any_record();
    append(record, record.sequence.value);
  }

  void append(const Record& record, std::uint64_t content) {
    const Urgency urgency = record.type == RecordType::kWrite || record.type == RecordType::kZero
                                ? Urgency::kOrdinary
                                : Urgency::kEssential;
    const std::uint64_t sequence = record.sequence.value;
    model_.appended(record, content);
    rig_.array->writer().append(
        record, test::whole(test::payload_of(content, record.payload_blocks)), urgency,
        [this, sequence](const Result<LoggedAt>& result) {
          if (powerless_ || !rig_.powered()) return;  // nobody is left to be told
          if (result) return model_.acknowledged(rig_, sequence, result->location);
          if (!troubled_ && result.error().code == ErrorCode::kIo) {
            wrong_ = "an append fails for no reason: " + to_string(result.error());
          }
          if (!troubled_) return model_.answered(sequence, State::kRefused);
          // Unless no disk is left, what failed does not come back.
          const bool failed = rig_.array->writer().failed();
          model_.answered(sequence, failed ? State::kFailed : State::kWithdrawn);
        });
  }

  // The host asks again for what it was not answered; the coordinator stamps it anew.
  void repeat() {
    const auto unheard = model_.unheard();
    for (const CampaignModel::Repeat& each : unheard) {
      Record record = each.record;
      record.sequence = SequenceNumber{++last_sequence_};
      record.time = VersionTime{1'000'000 + last_sequence_};
      if (record.type == RecordType::kVoid) record.target_sequence = record.sequence;
      append(record, each.content);
    }
  }

  // ---- a life -----------------------------------------------------------------------------------

  // Recovery, perhaps one that is interrupted.
  std::string open() {
    for (int attempt = 0;; ++attempt) {
      const bool interrupted = attempt < 2 && one_in(4);
      const bool unreadable = attempt < 2 && !interrupted && one_in(16);
      if (interrupted) any_slot().disk->cut_power_after(below(2));
      if (unreadable) {
        CampaignRig::Slot& slot = any_slot();
        slot.disk->fail_reads({below(slot.disk->size_bytes() / kBlockBytes) * kBlockBytes, 4096});
      }
      const Result<void> opened = rig_.open(one_in(16) ? 2 : 0, plan_.initialise);
      for (const auto& slot : rig_.slots) {
        slot->disk->fail_reads({});
        slot->disk->cut_power_after(UINT64_MAX);
      }
      if (opened && rig_.powered()) return {};
      const bool cut = !rig_.powered();
      if (!cut && !unreadable) return "recovery fails: " + to_string(opened.error());
      totals_.cuts_in_recovery += cut ? 1 : 0;
      rig_.cut_power();
      rig_.close();
      rig_.restore_power();
    }
  }

  std::string live() {
    powerless_ = false;
    troubled_ = false;
    if (plan_.repeats) repeat();
    const std::uint64_t steps = below(plan_.repeats ? 8 : 36);
    for (std::uint64_t step = 0; step < steps && rig_.powered(); ++step) {
      std::string wrong = this->step();
      if (wrong.empty()) wrong = wrong_;
      if (!wrong.empty()) {
        end(true);
        return wrong;
      }
    }
    end(!one_in(5));
    for (std::uint64_t hits = below(3); hits > 0; --hits) {
      if (plan_.damage) damage(any_slot());
      if (plan_.metadata) damage_metadata(any_slot());
    }
    keep_a_track();
    return wrong_;
  }

  std::string step() {
    if (!rig_.powered()) return {};
    if (plan_.packs && one_in(3)) {
      if (one_in(2)) rig_.array->writer().leave_tracks();
      rig_.pack(any_slot().number, 1 + below(3));
    }
    switch (below(8)) {
      case 0:
        for (std::uint64_t i = below(6); i > 0; --i) append();
        break;
      case 1:
      case 2: append(); break;
      case 3: rig_.executor.turn(); break;
      case 4: rig_.executor.advance(microseconds(one_in(6) ? 5000 : 1 + below(600))); break;
      case 5: return rig_.powered() ? model_.read_any(rig_, random_()) : "";
      case 6:
        if (one_in(3)) rig_.array->writer().leave_tracks();
        if (plan_.reclaims && one_in(2)) reclaim();
        break;
      default: trouble(); break;
    }
    return {};
  }

  void trouble() {
    CampaignRig::Slot& slot = any_slot();
    if (plan_.errors && one_in(2)) {
      troubled_ = true;
      const auto remains = static_cast<Remains>(below(3));
      if (one_in(6)) {
        for (const auto& each : rig_.slots) each->disk->fail_writes(2, remains);
      } else {
        slot.disk->fail_writes(1 + below(4) / 3, remains);
      }
    }
    if (plan_.hangs && one_in(2)) {
      troubled_ = true;
      slot.disk->hold();
      if (one_in(2)) rig_.executor.advance(std::chrono::milliseconds(1 + below(8)));
      if (one_in(3)) slot.disk->release();
    }
    if (plan_.capacity && one_in(2)) {
      troubled_ = true;
      slot.disk->set_capacity(one_in(2) ? 64 * kBlockBytes : UINT64_MAX);
    }
    if (plan_.lies && one_in(2)) {
      if (one_in(2)) {
        slot.disk->drop_next_write();
      } else {
        slot.disk->misdirect_next_write(any_place(slot) / kBlockBytes * kBlockBytes);
      }
    }
    if (plan_.members) change_members(slot);
  }

  void change_members(CampaignRig::Slot& slot) {
    rig_.retire();
    if (one_in(2)) {
      if (rig_.slots.size() < 5) add_disk();
    } else if (std::ranges::any_of(rig_.slots, [&](const auto& s) { return s.get() == &slot; })) {
      rig_.drain(slot.number);
    }
  }

  void reclaim() {
    const Result<void> read = rig_.reclaim(
        microseconds(below(300)),
        [this](const OldestRecords& oldest) {
          if (!powerless_) model_.given_up(oldest);
        },
        [this](const CampaignRig::Slot& slot, ByteRange track) { model_.freeing(slot, track); });
    const bool damaged =
        std::ranges::any_of(rig_.slots, [](const auto& slot) { return slot->is_damaged(); });
    if (!read && !damaged && rig_.powered()) {
      wrong_ = "the oldest records cannot be read: " + to_string(read.error());
    }
  }

  // With a power cut, or after everything was answered.
  void end(bool cut) {
    if (cut) {
      rig_.cut_power();
      powerless_ = true;
    }
    rig_.close();
    rig_.cut_power();
    rig_.restore_power();
  }

  // ---- damage -----------------------------------------------------------------------------------

  // Somewhere in a batch if there is one, else in the tracks.
  std::uint64_t any_place(CampaignRig::Slot& slot) {
    if (const auto batch = model_.any_batch(slot.number, random_())) {
      // Half of them in its header area.
      return batch->offset +
             below(one_in(2) ? std::uint64_t{slot.shape.sector_bytes} : batch->length);
    }
    const std::uint64_t first = slot.shape.first_sector * slot.shape.sector_bytes;
    return first + below(slot.shape.track_bytes());
  }

  std::uint64_t track_of(const CampaignRig::Slot& slot, std::uint64_t place) {
    const std::uint64_t first = slot.shape.first_sector * slot.shape.sector_bytes;
    return first + (place - first) / slot.shape.track_bytes() * slot.shape.track_bytes();
  }

  void flip(CampaignRig::Slot& slot, std::uint64_t at) {
    slot.disk->flip_bit(at, static_cast<unsigned>(below(8)));
    slot.damaged.push_back({at / 512 * 512, 512});
  }

  void put(CampaignRig::Slot& slot, std::uint64_t at, const std::vector<std::byte>& bytes) {
    const std::vector<std::byte> before = slot.disk->bytes({at, bytes.size()});
    if (before == bytes) return;
    slot.disk->overwrite(at, bytes);
    slot.damaged.push_back({at, bytes.size()});
  }

  void damage(CampaignRig::Slot& slot) {
    const std::uint64_t at = any_place(slot);
    switch (below(6)) {
      case 0:
      case 1: return flip(slot, at);
      case 2: return put(slot, at / 512 * 512, std::vector<std::byte>(512));
      case 3:  // a block of the log where another belongs
        return put(slot, at / 4096 * 4096, slot.disk->bytes({any_place(slot) / 4096 * 4096, 4096}));
      case 4:
        if (!slot.rotates) flip(slot, track_of(slot, at) + below(64));
        return;
      default:
        if (kept_disk_.lock() == slot.spy) put(slot, kept_at_, kept_);
        return;
    }
  }

  void damage_metadata(CampaignRig::Slot& slot) {
    if (one_in(2)) {  // one copy of two
      return flip(slot, slot.number % 2 * kSuperblockStride * kBlockBytes + below(100));
    }
    flip(slot, (kListFirstBlock + below(4)) * kBlockBytes + below(200));
  }

  // For a later life: a track as it is now, or the beginning of it.
  void keep_a_track() {
    if (!plan_.damage || !one_in(2)) return;
    CampaignRig::Slot& slot = any_slot();
    kept_disk_ = slot.spy;
    kept_at_ = track_of(slot, any_place(slot));
    kept_ =
        slot.disk->bytes({kept_at_, std::min<std::uint64_t>(slot.shape.track_bytes(), 256u << 10)});
  }

  void add_up() {
    totals_.packed += rig_.packed;
    const CampaignModel::Counts& c = model_.counts();
    totals_.counts.acknowledged += c.acknowledged;
    totals_.counts.visited += c.visited;
    totals_.counts.given_up += c.given_up;
    totals_.counts.lost_reported += c.lost_reported;
    totals_.counts.lost_at_end += c.lost_at_end;
    totals_.counts.reads_refused += c.reads_refused;
    totals_.counts.damage_reports += c.damage_reports;
    totals_.counts.lost_at_front += c.lost_at_front;
    totals_.counts.other_copies += c.other_copies;
    totals_.counts.replaced += c.replaced;
    totals_.counts.reappeared += c.reappeared;
  }

  std::mt19937_64 random_;
  const Plan plan_;
  CampaignRig rig_;
  CampaignModel model_;
  Totals& totals_;
  std::uint64_t last_sequence_ = 0;
  bool powerless_ = false;
  bool troubled_ = false;
  std::string wrong_;
  std::weak_ptr<test::BatchSpy> kept_disk_;  // a later disk may stand at its address
  std::uint64_t kept_at_ = 0;
  std::vector<std::byte> kept_;
};

TEST(LogCampaign, NothingAcknowledgedIsLostAndNoDamagePassesForData) {
  Totals totals;
  mariner::test::for_seeds(kSeeds, [&](std::uint64_t seed) {
    Campaign campaign(seed, totals);
    ASSERT_EQ(campaign.run(), "");
  });
  const mariner::test::SeedRange seeds = mariner::test::seeds_to_run(kSeeds);
  const CampaignModel::Counts& c = totals.counts;
  std::cout << "seeds " << seeds.first << " to " << seeds.first + seeds.count - 1 << ": "
            << totals.lives << " lives, " << totals.cuts_in_recovery << " power cuts in recovery, "
            << totals.packed << " tracks packed; records: " << c.acknowledged << " acknowledged, "
            << c.visited << " found, " << c.given_up
            << " given up; on damaged disks: " << c.lost_reported << " lost in " << c.damage_reports
            << " reported ranges, " << c.reads_refused << " reads refused (" << c.other_copies
            << " with a whole copy elsewhere), " << c.lost_at_end << " cut with the end, "
            << c.lost_at_front << " missing at the front, " << c.replaced << " replaced, "
            << c.reappeared << " came back\n";
}

}  // namespace
}  // namespace mariner::logging
