#include "tests/sim/simulated_drive.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::test {

using logging::ConstBytes;
using logging::Durability;
using logging::Geometry;
using logging::SectorRange;
using logging::Zone;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// From the dissertation (4.6.2): the controller's delay, 0.104 ms, and some 0.3 ms between it and
// the first sector, of which settling is a part. From the drive's public data sheet (Deskstar
// 75GXP): 7,200 revolutions a minute, 60,036,480 sectors, a switch of heads in 1.2 ms, seeks of 9.5
// ms on average and 15.7 ms in full for writes. Ours: the cut into zones, twelve of equal width
// whose track lengths fall linearly from some 700 sectors so that the capacity comes out; the data
// sheet's zone table was not at hand. Fitted: the settling time, so that a look-ahead of 22 sectors
// behind the controller's delay just covers it in the outermost zone. There the dissertation's
// numbers agree with each other: 0.104 ms + 22 sectors = 0.37 ms (its Y intercept, "approximately
// 0.4"), and with nine sectors of data 0.47 ms (its minimum, 0.475); counted from the dispatch, 22
// sectors would not reach 0.4 ms on any but the innermost tracks. And fitted: the uneven speed, so
// that extrapolation over 50 ms is nearly always good enough and over 100 ms is not (Figure 4.12).
// One part in ten thousand is what a crystal-controlled spindle of that time holds.
SimulatedDrive::Options SimulatedDrive::deskstar(std::uint64_t seed) {
  constexpr std::uint32_t kHeads = 4;
  constexpr std::uint64_t kCylindersOfZone = 2329;
  std::array<Zone, 12> zones;
  std::uint64_t sector = 0;
  std::uint32_t length = 702;
  for (Zone& zone : zones) {
    zone = {sector, kCylindersOfZone * kHeads, length};
    sector = zone.end_sector();
    length -= 30;
  }
  const auto geometry = Geometry::make(
      {.sector_bytes = kSectorBytes, .rotation = Time(60'000'000'000 / 7200), .zones = zones});
  CHECK(geometry.has_value());
  return {.geometry = *geometry,
          .heads = kHeads,
          .controller_delay = microseconds(104),
          .settle = microseconds(245),
          .track_switch = microseconds(1200),
          .seek_average = microseconds(9500),
          .seek_full = microseconds(15700),
          .speed_deviation = 1e-4,
          .speed_memory = milliseconds(500),
          .seed = seed};
}

SimulatedDrive::SimulatedDrive(Executor& executor, const Options& options)
    : executor_(executor),
      options_(options),
      skew_(static_cast<double>(options.track_skew().count()) /
            static_cast<double>(options.geometry.rotation().count())),
      clock_(executor.monotonic_time()),
      random_(options.seed) {
  CHECK(options.geometry.rotates() && options.geometry.sector_bytes() == kSectorBytes);
  CHECK(options.heads > 0);
  angle_ = std::uniform_real_distribution<double>(0, 1)(random_);
  deviation_ = options.speed_deviation * normal_(random_);
}

SimulatedDrive::~SimulatedDrive() {
  *alive_ = false;
  CHECK_MSG(commands_.empty(), "a simulated drive is destroyed in use");
}

std::uint64_t SimulatedDrive::size_bytes() const {
  return options_.geometry.end_sector() * kSectorBytes;
}

// ---- the platter and the head -------------------------------------------------------------------

double SimulatedDrive::angle_of(std::uint64_t track, std::uint32_t sector) const {
  const double turned = skew_ * static_cast<double>(track) +
                        static_cast<double>(sector) / options_.geometry.track(track).count;
  return turned - std::floor(turned);
}

// The speed's deviation over a span of time is an Ornstein-Uhlenbeck process: its value at the end
// and its integral are jointly normal, with the moments below (Gillespie 1996, "Exact numerical
// simulation of the Ornstein-Uhlenbeck process and its integral").
void SimulatedDrive::turn_until(Time time) {
  if (time <= clock_) return;
  const auto rotation = static_cast<double>(options_.geometry.rotation().count());
  const auto memory = static_cast<double>(options_.speed_memory.count());
  const double span = static_cast<double>((time - clock_).count());
  const double x = span / memory;
  const double decay = std::exp(-x);
  const double variance = options_.speed_deviation * options_.speed_deviation;
  const double of_value = variance * (1 - decay * decay);
  const double of_integral = variance * memory * memory * (2 * x - 3 + 4 * decay - decay * decay);
  const double of_both = variance * memory * (1 - decay) * (1 - decay);
  const double first = normal_(random_);
  const double second = normal_(random_);
  const double slope = of_value > 0 ? of_both / of_value : 0;
  const double integral = deviation_ * memory * (1 - decay) + slope * std::sqrt(of_value) * first +
                          std::sqrt(std::max(0.0, of_integral - slope * of_both)) * second;
  deviation_ = deviation_ * decay + std::sqrt(of_value) * first;
  angle_ += (span + integral) / rotation;
  angle_ -= std::floor(angle_);
  clock_ = time;
}

// By an angle instead of a time. Within a revolution or two the speed does not change noticeably.
void SimulatedDrive::turn_by(double revolutions) {
  const auto rotation = static_cast<double>(options_.geometry.rotation().count());
  clock_ += Time(std::llround(revolutions * rotation / (1 + deviation_)));
  angle_ += revolutions;
  angle_ -= std::floor(angle_);
}

void SimulatedDrive::turn_to(std::uint64_t track, std::uint32_t sector) {
  const double ahead = angle_of(track, sector) - angle_;
  // What rounding has put a hair behind the head is under it.
  constexpr double kHair = 1e-7;
  turn_by(ahead < -kHair ? ahead + 1 : std::max(ahead, 0.0));
}

SimulatedDrive::Time SimulatedDrive::move_time(std::uint64_t track) const {
  if (track == track_) return options_.settle;
  const std::uint64_t from = track_ / options_.heads;
  const std::uint64_t to = track / options_.heads;
  const std::uint64_t distance = from > to ? from - to : to - from;
  if (distance <= 1) return options_.track_switch + options_.settle;
  // The arm accelerates over short distances (a root) and coasts over long ones (a line).
  const double all =
      std::max(4.0, static_cast<double>(options_.geometry.track_count() / options_.heads));
  const double third = all / 3;
  const auto d = static_cast<double>(distance);
  const auto shortest = static_cast<double>(options_.track_switch.count());
  const auto average = static_cast<double>(options_.seek_average.count());
  const auto full = static_cast<double>(options_.seek_full.count());
  const double seek = d <= third
                          ? shortest + (average - shortest) * std::sqrt((d - 1) / (third - 1))
                          : average + (full - average) * (d - third) / (all - third);
  return Time(std::llround(seek)) + options_.settle;
}

SimulatedDrive::Time SimulatedDrive::serve(std::uint64_t sector, std::uint64_t count) {
  passes_.clear();
  turn_until(executor_.monotonic_time() + options_.controller_delay);
  while (count > 0) {
    const std::uint64_t number = options_.geometry.track_of(sector);
    const SectorRange track = options_.geometry.track(number);
    turn_until(clock_ + move_time(number));
    track_ = number;
    const auto offset = static_cast<std::uint32_t>(sector - track.first);
    const std::uint64_t piece = std::min<std::uint64_t>(count, track.count - offset);
    turn_to(number, offset);
    const Time begin = clock_;
    turn_by(static_cast<double>(piece) / track.count);
    passes_.push_back({begin, clock_, piece});
    sector += piece;
    count -= piece;
  }
  return clock_;
}

// ---- commands -----------------------------------------------------------------------------------

Result<void> SimulatedDrive::check(std::uint64_t offset, std::uint64_t length) const {
  CHECK((offset | length) % kSectorBytes == 0 && length > 0);
  if (!powered_) return Error{ErrorCode::kIo, "the simulated drive has no power"};
  if (offset + length > size_bytes()) {
    return Error{ErrorCode::kIo, "access behind the end of the simulated drive"};
  }
  return {};
}

void SimulatedDrive::async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  submit({.offset = offset, .length = to.size(), .to = to, .done = std::move(done)});
}

void SimulatedDrive::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                                 Durability /*durability*/, Completion done) {
  std::uint64_t length = 0;
  for (const ConstBytes& part : parts) length += part.size();
  submit({.offset = offset, .length = length, .parts = std::move(parts), .done = std::move(done)});
}

void SimulatedDrive::submit(Command command) {
  CHECK(commands_.size() < kQueueMax);
  commands_.push_back(std::move(command));
  if (commands_.size() == 1) start_next();
}

void SimulatedDrive::start_next() {
  const Command& command = commands_.front();
  started_ = executor_.monotonic_time();
  const bool possible = check(command.offset, command.length).has_value();
  const Time end = possible ? serve(command.offset / kSectorBytes, command.length / kSectorBytes)
                            : started_ + options_.controller_delay;
  executor_.after(end - started_, [this, cuts = power_cuts_, alive = alive_] {
    if (*alive && cuts == power_cuts_) complete();
  });
}

void SimulatedDrive::complete() {
  Command command = std::move(commands_.front());
  commands_.pop_front();
  busy_time_ += executor_.monotonic_time() - started_;
  if (!commands_.empty()) start_next();
  Result<void> result = command.parts.empty()
                            ? read(command.offset, command.to)
                            : write(command.offset, command.parts, Durability::kDurable);
  command.done(std::move(result));
}

std::uint64_t SimulatedDrive::sectors_passed() const {
  const Time now = executor_.monotonic_time();
  std::uint64_t sectors = 0;
  for (const Pass& pass : passes_) {
    if (now >= pass.end) {
      sectors += pass.sectors;
    } else if (now > pass.begin) {
      sectors += pass.sectors * static_cast<std::uint64_t>((now - pass.begin).count()) /
                 static_cast<std::uint64_t>((pass.end - pass.begin).count());
    }
  }
  return sectors;
}

void SimulatedDrive::cut_power() {
  powered_ = false;
  ++power_cuts_;
  if (!commands_.empty()) {
    busy_time_ += executor_.monotonic_time() - started_;
    std::uint64_t left = sectors_passed() * kSectorBytes;
    std::uint64_t offset = commands_.front().offset;
    const std::lock_guard lock(mutex_);
    for (const ConstBytes& part : commands_.front().parts) {
      const std::uint64_t piece = std::min<std::uint64_t>(left, part.size());
      put(offset, part.first(piece));
      offset += piece;
      left -= piece;
    }
  }
  for (Command& command : std::exchange(commands_, {})) {
    executor_.post([done = std::move(command.done)]() mutable {
      done(Error{ErrorCode::kIo, "the simulated drive has lost its power"});
    });
  }
}

void SimulatedDrive::restore_power() {
  powered_ = true;
  track_ = 0;
  clock_ = executor_.monotonic_time();
  angle_ = std::uniform_real_distribution<double>(0, 1)(random_);
}

// ---- contents -----------------------------------------------------------------------------------

Result<void> SimulatedDrive::read(std::uint64_t offset, std::span<std::byte> to) {
  if (Result<void> possible = check(offset, to.size()); !possible) return possible;
  const std::lock_guard lock(mutex_);
  get(offset, to);
  return {};
}

Result<void> SimulatedDrive::write(std::uint64_t offset, std::span<const ConstBytes> parts,
                                   Durability /*durability*/) {
  std::uint64_t length = 0;
  for (const ConstBytes& part : parts) length += part.size();
  if (Result<void> possible = check(offset, length); !possible) return possible;
  const std::lock_guard lock(mutex_);
  for (const ConstBytes& part : parts) {
    CHECK(part.size() % kSectorBytes == 0);
    put(offset, part);
    offset += part.size();
  }
  return {};
}

Result<void> SimulatedDrive::discard(ByteRange range) {
  if (Result<void> possible = check(range.offset, range.length); !possible) return possible;
  const Page zeros{};
  const std::lock_guard lock(mutex_);
  for (std::uint64_t at = range.offset; at < range.end();) {
    const std::uint64_t piece = std::min(range.end(), (at / kPageBytes + 1) * kPageBytes) - at;
    if (pages_.contains(at / kPageBytes)) put(at, std::span(zeros).first(piece));
    at += piece;
  }
  return {};
}

void SimulatedDrive::put(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t within = offset % kPageBytes;
    const std::size_t piece = std::min<std::size_t>(bytes.size(), kPageBytes - within);
    auto& page = pages_[offset / kPageBytes];
    if (!page) page = std::make_unique<Page>();
    std::memcpy(page->data() + within, bytes.data(), piece);
    bytes = bytes.subspan(piece);
    offset += piece;
  }
}

void SimulatedDrive::get(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const std::size_t within = offset % kPageBytes;
    const std::size_t piece = std::min<std::size_t>(to.size(), kPageBytes - within);
    const auto page = pages_.find(offset / kPageBytes);
    if (page == pages_.end()) {
      std::memset(to.data(), 0, piece);
    } else {
      std::memcpy(to.data(), page->second->data() + within, piece);
    }
    to = to.subspan(piece);
    offset += piece;
  }
}

}  // namespace mariner::test
