// The log on rotating drives through power cuts: what was acknowledged is found again, whole and in
// its order, and nothing else but what was on its way. A failure names its seed;
// MARINER_TEST_SEED=N runs that one alone, MARINER_TEST_SEEDS=N so many.
#include "tests/sim/simulated_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/logging/log_testing.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using logging::LogLocation;
using logging::Record;
using logging::Recovered;
using logging::Urgency;
using logging::test::payload_of;
using logging::test::record_of;
using logging::test::whole;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = SimulatedLog::Time;

// A log and what is known of each record: where it stands and in which allocation, if it was
// acknowledged or has been found.
class Rig {
 public:
  explicit Rig(const SimulatedLog::Options& options)
      : log(executor, options), disks(options.disks) {}
  ~Rig() { settle(); }

  // What is wrong with what recovery finds, or nothing.
  std::string open() {
    std::vector<std::pair<Record, LogLocation>> visited;
    Result<Recovered> result = log.open(
        [&](const Record& record, const LogLocation& at) { visited.emplace_back(record, at); });
    if (!result) return to_string(result.error());
    recovered = *std::move(result);
    if (!recovered->damage.empty()) return "damage: " + recovered->damage[0].what;
    return judge(visited);
  }

  void append(std::uint32_t blocks) {
    const std::uint64_t sequence = ++sequence_;
    Entry& entry = entries_[sequence];
    entry.blocks = blocks;
    log.log().writer().append(record_of(1, sequence, blocks), whole(payload_of(sequence, blocks)),
                              Urgency::kOrdinary, [this, &entry](Result<logging::LoggedAt> at) {
                                if (!at) return;
                                entry.at = at->location;
                                entry.allocation = allocation_of(
                                    at->location, log.member(at->location.disk).tracks);
                                ++acknowledged;
                                log.recycle(at->location.disk);
                              });
  }

  void cut_power() {
    log.cut_power();
    settle();
    youngest.clear();
    for (std::size_t i = 0; i < disks; ++i) {
      youngest.push_back(log.member(i).log_disk->current_allocation());
    }
    log.close();
    log.restore_power();
  }

  // Until nothing is on its way.
  void settle() {
    for (executor.run_ready(); !log.idle();) executor.advance(milliseconds(1));
  }

  ManualExecutor executor;
  SimulatedLog log;
  const std::size_t disks;
  std::optional<Recovered> recovered;
  std::vector<std::uint64_t> youngest;  // track that each disk had taken when the power went
  std::size_t acknowledged = 0;

 private:
  struct Entry {
    std::uint32_t blocks = 0;
    std::optional<LogLocation> at;
    std::uint64_t allocation = 0;
  };

  [[nodiscard]] bool reads_back(std::uint64_t sequence, const LogLocation& at,
                                std::uint32_t blocks) {
    Payload to = Payload::allocate(std::size_t{blocks} * kBlockBytes);
    const Payload expected = payload_of(sequence, blocks);
    return logging::read_log_blocking(log.log().disks(),
                                      {at, VolumeId{1}, SequenceNumber{sequence}, 0, to.bytes()}) &&
           std::memcmp(to.data(), expected.data(), to.size()) == 0;
  }

  std::string judge(const std::vector<std::pair<Record, LogLocation>>& visited) {
    std::vector<std::uint64_t> last(disks, 0);  // allocation with something acknowledged
    std::map<std::uint64_t, LogLocation> found;
    std::uint64_t before = 0;
    for (const auto& [record, at] : visited) {
      const std::uint64_t sequence = record.sequence.value;
      const std::string name = "record " + std::to_string(sequence);
      if (sequence <= before) return name + " is out of order";
      before = sequence;
      if (!entries_.contains(sequence)) return name + " was never appended or had been lost";
      if (!reads_back(sequence, at, entries_[sequence].blocks)) return name + " is not whole";
      found.emplace(sequence, at);
    }
    for (const auto& [sequence, entry] : entries_) {
      if (!entry.at) continue;
      const auto& disk = recovered->disks[entry.at->disk];
      last[entry.at->disk] = std::max(last[entry.at->disk], entry.allocation);
      if (entry.allocation < disk.tracks.oldest()) continue;  // given up
      const auto it = found.find(sequence);
      if (it == found.end()) return "record " + std::to_string(sequence) + " is lost";
      if (it->second != *entry.at) return "record " + std::to_string(sequence) + " has moved";
    }
    for (std::size_t i = 0; i < disks; ++i) {
      const std::uint64_t allocation = recovered->disks[i].tail.allocation;
      // A track on which nothing came to its end may have been found or not.
      if (allocation < last[i] || (!youngest.empty() && allocation > youngest[i])) {
        return "disk " + std::to_string(i) + " ends in allocation " + std::to_string(allocation) +
               " instead of " + std::to_string(last[i]);
      }
    }
    // From here on what was found counts as acknowledged, and what was not must not come back.
    std::map<std::uint64_t, Entry> known;
    for (const auto& [sequence, at] : found) {
      known[sequence] = {entries_[sequence].blocks, at,
                         allocation_of(at, recovered->disks[at.disk].tracks)};
    }
    entries_ = std::move(known);
    return {};
  }

  [[nodiscard]] std::uint64_t allocation_of(const LogLocation& at,
                                            const logging::TrackList& tracks) const {
    const logging::Superblock& superblock = log.member(at.disk).superblock;
    for (std::uint64_t a = tracks.oldest(); a < tracks.end(); ++a) {
      const auto track = tracks.track(a);
      if (track && superblock.track(*track).contains(at.batch_sector)) return a;
    }
    return 0;
  }

  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t sequence_ = 0;
};

// Some lives, each ended by a power cut in the middle of load. Returns what is wrong, or nothing.
struct Seen {
  std::uint64_t torn_records = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t recycled = 0;
};
std::string history(std::uint64_t seed, Seen& seen) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  Rig rig({.disks = 1 + seed % 4,
           .tracks = 4 + below(20),
           .t_switch = seed % 3 == 0 ? 0.5 : 8.0,
           .seed = seed});
  for (int life = 0; life < 4; ++life) {
    if (std::string wrong = rig.open(); !wrong.empty()) {
      return "life " + std::to_string(life) + ": " + wrong;
    }
    seen.torn_records += rig.recovered->tail_records_cut;
    const std::uint64_t until = rig.acknowledged + below(600);
    const auto interval = microseconds(100 + below(900));
    for (std::uint64_t tries = 0; rig.acknowledged < until && tries < 2000; ++tries) {
      for (std::uint64_t i = below(3); i > 0; --i) {
        rig.append(static_cast<std::uint32_t>(below(4) > 0 ? 1 : 1 + below(30)));
      }
      rig.executor.advance(interval);
    }
    rig.executor.advance(microseconds(below(3000)));
    for (std::size_t i = 0; i < rig.disks; ++i) {
      seen.recycled += rig.log.member(i).tracks.oldest() - 1;
    }
    rig.cut_power();
  }
  seen.acknowledged += rig.acknowledged;
  const std::string wrong = rig.open();
  return wrong.empty() ? wrong : "at the end: " + wrong;
}

TEST(SimulatedLog, AcknowledgedRecordsSurvivePowerCutsInTheMiddleOfLoad) {
  Seen seen;
  const char* one = std::getenv("MARINER_TEST_SEED");
  const char* many = std::getenv("MARINER_TEST_SEEDS");
  const std::uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
  const std::uint64_t last = one != nullptr    ? first
                             : many != nullptr ? std::strtoull(many, nullptr, 10)
                                               : 60;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("MARINER_TEST_SEED=" + std::to_string(seed));
    ASSERT_EQ(history(seed, seen), "");
  }
  if (last - first < 59) return;
  EXPECT_GT(seen.torn_records, 20u) << "or nothing was in flight when the power went";
  EXPECT_GT(seen.acknowledged, 20'000u);
  EXPECT_GT(seen.recycled, 1'000u);
}

// The same load each time; the power goes while the last batch's payload passes under the head.
TEST(SimulatedLog, ATornLastBatchIsCutAndDoesNotComeBack) {
  constexpr std::uint32_t kBlocks = 40;  // 3.8 ms under the head
  const auto load = [](Rig& rig) {
    ASSERT_EQ(rig.open(), "");
    rig.executor.advance(milliseconds(40));
    for (int i = 0; i < 100; ++i) {
      rig.append(1);
      rig.executor.advance(milliseconds(2));
    }
    ASSERT_EQ(rig.acknowledged, 100u);
    rig.append(kBlocks);
  };
  const SimulatedLog::Options options{.disks = 3, .tracks = 8};
  Rig whole_rig(options);
  load(whole_rig);
  Time duration{0};
  for (; whole_rig.acknowledged == 100; duration += microseconds(100)) {
    whole_rig.executor.advance(microseconds(100));
  }
  Rig rig(options);
  load(rig);
  rig.executor.advance(duration - microseconds(1000));
  ASSERT_EQ(rig.acknowledged, 100u);
  rig.cut_power();
  ASSERT_EQ(rig.open(), "");
  EXPECT_EQ(rig.recovered->tail_records_cut, 1u);
  EXPECT_EQ(rig.recovered->records, 100u);
  for (int life = 0; life < 3; ++life) {  // the log goes on, and the remains stay what they are
    for (int i = 0; i < 5; ++i) {
      rig.append(1);
      rig.executor.advance(milliseconds(5));
    }
    rig.cut_power();
    ASSERT_EQ(rig.open(), "");
    EXPECT_EQ(rig.recovered->records, 100u + 5 * (life + 1));
    EXPECT_EQ(rig.recovered->tail_records_cut, 0u);
  }
}

// Where a batch was torn so early that its track does not count as taken, the next batch of the
// same number goes to the same track, and could be completed by what stands there.
TEST(SimulatedLog, TheWholeTracksThatAreTakenNextAreErased) {
  Rig rig({.disks = 1, .tracks = 8});
  const auto superblock = logging::read_superblock(rig.log.drive(0));
  ASSERT_TRUE(superblock.has_value());
  const logging::SectorRange next = superblock->track(0);
  // Two: a failed write may leave one unused.
  std::vector<std::byte> bytes(std::size_t{2 * next.count + 1} * SimulatedDrive::kSectorBytes,
                               std::byte{0x5a});
  const logging::ConstBytes part(bytes);
  const std::uint64_t offset = next.first * SimulatedDrive::kSectorBytes;
  ASSERT_TRUE(
      rig.log.drive(0).write(offset, {&part, 1}, logging::Durability::kDurable).has_value());
  ASSERT_EQ(rig.open(), "");
  std::vector<std::byte> back(bytes.size());
  ASSERT_TRUE(rig.log.drive(0).read(offset, back).has_value());
  std::fill_n(bytes.begin(), 2 * superblock->track_bytes(), std::byte{0});
  EXPECT_EQ(back, bytes) << "and nothing behind it";
}

TEST(SimulatedLog, TheYoungestTrackIsFoundAfterManyRounds) {
  Rig rig({.disks = 2, .tracks = 9, .t_switch = 0.5});
  ASSERT_EQ(rig.open(), "");
  for (int i = 0; i < 1500; ++i) {
    rig.append(1);
    rig.executor.advance(milliseconds(2));
  }
  rig.settle();
  for (std::size_t i = 0; i < rig.disks; ++i) {
    ASSERT_GT(rig.log.member(i).log_disk->current_allocation(), 3 * 9u);
  }
  rig.cut_power();
  ASSERT_EQ(rig.open(), "");
}

}  // namespace
}  // namespace mariner::test
