#include "tests/support/faulty_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::test {

using logging::ConstBytes;
using logging::Durability;

namespace {

// Calls visit(offset, bytes) for each sector of consecutive parts.
template <typename Visit>
void each_sector(std::uint64_t offset, std::span<const ConstBytes> parts, Visit visit) {
  for (const ConstBytes& part : parts) {
    for (std::size_t at = 0; at < part.size(); at += FaultyDisk::kSectorBytes) {
      visit(offset, part.subspan(at, FaultyDisk::kSectorBytes));
      offset += FaultyDisk::kSectorBytes;
    }
  }
}

Error power_is_off() { return {ErrorCode::kIo, "the faulty disk's power is off"}; }

}  // namespace

std::uint64_t FaultyDisk::Write::length() const {
  std::uint64_t total = 0;
  for (const ConstBytes& part : parts) total += part.size();
  return total;
}

FaultyDisk::FaultyDisk(Executor& executor, const Options& options)
    : executor_(executor), options_(options), random_(options.seed) {
  CHECK(options.size_bytes % kBlockBytes == 0);
  CHECK(options.alignment == kSectorBytes || options.alignment == kBlockBytes);
}

FaultyDisk::~FaultyDisk() {
  *alive_ = false;
  CHECK_MSG(in_flight_.empty(), "a faulty disk is destroyed in use");
}

std::uint64_t FaultyDisk::random(std::uint64_t below) { return random_() % below; }

void FaultyDisk::copy_out(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const std::size_t within = offset % kBlockBytes;
    const std::size_t piece = std::min<std::size_t>(to.size(), kBlockBytes - within);
    const auto page = pages_.find(offset / kBlockBytes);
    if (page == pages_.end()) {
      std::memset(to.data(), 0, piece);
    } else {
      std::memcpy(to.data(), page->second->data() + within, piece);
    }
    to = to.subspan(piece);
    offset += piece;
  }
}

void FaultyDisk::put(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t within = offset % kBlockBytes;
    const std::size_t piece = std::min<std::size_t>(bytes.size(), kBlockBytes - within);
    auto& page = pages_[offset / kBlockBytes];
    if (!page) page = std::make_unique<Page>();
    std::memcpy(page->data() + within, bytes.data(), piece);
    bytes = bytes.subspan(piece);
    offset += piece;
  }
}

void FaultyDisk::put_sectors(const Write& write, const std::vector<bool>& chosen, bool durable) {
  std::size_t number = 0;
  each_sector(write.offset, write.parts, [&](std::uint64_t offset, ConstBytes bytes) {
    if (!chosen[number++]) return;
    if (durable) {
      durable_.erase(offset);
      for (Sectors& flush : flushes_) flush.erase(offset);
    } else if (auto [entry, fresh] = durable_.try_emplace(offset); fresh) {
      copy_out(offset, entry->second);
    }
    put(offset, bytes);
  });
}

// None, all, those before a tear, those behind it, or each with a chance of one half.
std::vector<bool> FaultyDisk::any_sectors(std::uint64_t count) {
  std::vector<bool> chosen(count, false);
  const std::uint64_t tear = random(count + 1);
  const std::uint64_t how = random(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    switch (how) {
      case 0: break;
      case 1: chosen[i] = true; break;
      case 2: chosen[i] = i < tear; break;
      case 3: chosen[i] = i >= tear; break;
      default: chosen[i] = random(2) == 0; break;
    }
  }
  return chosen;
}

Result<void> FaultyDisk::do_read(std::uint64_t offset, std::span<std::byte> to) {
  CHECK((offset | to.size()) % options_.alignment == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(to.data()) % options_.alignment == 0);
  if (!powered_) return power_is_off();
  if (offset + to.size() > options_.size_bytes) {
    return Error{ErrorCode::kIo, "read behind the end of the faulty disk"};
  }
  if (offset < unreadable_.end() && unreadable_.offset < offset + to.size()) {
    return Error{ErrorCode::kIo, "unreadable sectors of the faulty disk"};
  }
  copy_out(offset, to);
  return {};
}

bool FaultyDisk::runs_full(const Write& write) const {
  if (capacity_ == UINT64_MAX) return false;
  std::uint64_t fresh = 0;
  const std::uint64_t end = (write.offset + write.length() + kBlockBytes - 1) / kBlockBytes;
  for (std::uint64_t page = write.offset / kBlockBytes; page < end; ++page) {
    fresh += pages_.contains(page) ? 0 : 1;
  }
  return fresh > 0 && (pages_.size() + fresh) * kBlockBytes > capacity_;
}

Result<void> FaultyDisk::do_write(Write write) {
  CHECK(write.offset % options_.alignment == 0);
  for (const ConstBytes& part : write.parts) {
    CHECK(part.size() % options_.alignment == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(part.data()) % options_.alignment == 0);
  }
  if (!powered_) return power_is_off();
  const std::uint64_t length = write.length();
  writes_.push_back({write.offset, length});
  if (write.offset + length > options_.size_bytes) {
    return Error{ErrorCode::kIo, "write behind the end of the faulty disk"};
  }
  if (runs_full(write)) return Error{ErrorCode::kNoSpace, "the faulty disk is full"};
  const std::uint64_t sectors = length / kSectorBytes;
  if (failing_writes_ > 0) {
    --failing_writes_;
    if (remains_ != Remains::kNothing) {
      put_sectors(write,
                  remains_ == Remains::kEverything ? std::vector<bool>(sectors, true)
                                                   : any_sectors(sectors),
                  true);
    }
    return Error{ErrorCode::kIo, "a write of the faulty disk fails"};
  }
  if (writes_to_power_cut_ != UINT64_MAX && writes_to_power_cut_-- == 0) {
    put_sectors(write, any_sectors(sectors), true);
    lose_power();
    return power_is_off();
  }
  const bool dropped = std::exchange(dropping_, false);
  if (dropped || misdirected_to_) lies_.push_back({write.offset, length});
  if (dropped) return {};
  if (misdirected_to_) {
    write.offset = std::min(*std::exchange(misdirected_to_, std::nullopt),
                            (options_.size_bytes - length) / kBlockBytes * kBlockBytes);
    lies_.push_back({write.offset, length});
  }
  put_sectors(write, std::vector<bool>(sectors, true), write.durability == Durability::kDurable);
  return {};
}

Result<void> FaultyDisk::read(std::uint64_t offset, std::span<std::byte> to) {
  const std::lock_guard lock(mutex_);
  return do_read(offset, to);
}

Result<void> FaultyDisk::write(std::uint64_t offset, std::span<const ConstBytes> parts,
                               Durability durability) {
  const std::lock_guard lock(mutex_);
  return do_write({offset, {parts.begin(), parts.end()}, durability});
}

Result<void> FaultyDisk::flush() {
  const std::lock_guard lock(mutex_);
  if (!powered_) return power_is_off();
  durable_.clear();
  for (Sectors& flush : flushes_) flush.clear();
  return {};
}

Result<void> FaultyDisk::discard(ByteRange range) {
  const std::lock_guard lock(mutex_);
  if (!powered_) return power_is_off();
  const std::vector<std::byte> zeros(kBlockBytes);
  for (std::uint64_t at = range.offset; at < range.end(); at += kBlockBytes) {
    if (!pages_.contains(at / kBlockBytes)) continue;
    put_sectors({at, {ConstBytes(zeros)}, Durability::kVolatile},
                std::vector<bool>(kBlockBytes / kSectorBytes, true), false);
  }
  return {};
}

void FaultyDisk::async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  start({{}, {}, offset, to, std::move(done)});
}

void FaultyDisk::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                             Durability durability, Completion done) {
  start({Write{offset, std::move(parts), durability}, {}, offset, {}, std::move(done)});
}

void FaultyDisk::async_flush(Completion done) {
  std::unique_lock lock(mutex_);
  const auto flush = flushes_.emplace(flushes_.end());
  for (const auto& [offset, before] : durable_) copy_out(offset, (*flush)[offset]);
  lock.unlock();
  start({{}, flush, 0, {}, std::move(done)});
}

// What was written since the flush was asked for is not durable.
Result<void> FaultyDisk::do_flush(std::list<Sectors>::iterator flush) {
  const Sectors sectors = std::move(*flush);
  // Those that were asked for earlier have nothing to add.
  for (auto earlier = flushes_.begin(); earlier != flush; ++earlier) earlier->clear();
  flushes_.erase(flush);
  if (!powered_) return power_is_off();
  for (const auto& [offset, then] : sectors) {
    const auto found = durable_.find(offset);
    if (found == durable_.end()) continue;
    Sector now{};
    copy_out(offset, now);
    if (now == then) {
      durable_.erase(found);
    } else {
      found->second = then;
    }
  }
  return {};
}

void FaultyDisk::start(InFlight operation) {
  in_flight_.push_back(std::move(operation));
  auto run = [this, at = std::prev(in_flight_.end()), alive = alive_] {
    if (*alive) complete(at);
  };
  if (options_.delay_max.count() == 0) {
    executor_.post(std::move(run));
  } else {
    const std::unique_lock lock(mutex_);
    const auto delay = random(static_cast<std::uint64_t>(options_.delay_max.count()) + 1);
    executor_.after(std::chrono::nanoseconds(delay), std::move(run));
  }
}

void FaultyDisk::complete(std::list<InFlight>::iterator operation) {
  if (holding_) {
    held_.push_back(operation);
    return;
  }
  Result<void> result;
  {
    const std::lock_guard lock(mutex_);
    if (operation->flush) {
      result = do_flush(*operation->flush);
    } else if (operation->write) {
      result = do_write(*operation->write);
    } else {
      result = do_read(operation->offset, operation->to);
    }
  }
  // The memory of a write may belong to its completion: only now may that go.
  Completion done = std::move(operation->done);
  in_flight_.erase(operation);
  done(std::move(result));
}

void FaultyDisk::hold() { holding_ = true; }

void FaultyDisk::release() {
  holding_ = false;
  for (const auto operation : std::exchange(held_, {})) complete(operation);
}

void FaultyDisk::cut_power() {
  const std::lock_guard lock(mutex_);
  if (powered_) lose_power();
}

void FaultyDisk::lose_power() {
  const std::vector<bool> stays = any_sectors(durable_.size());
  std::size_t number = 0;
  for (const auto& [offset, before] : durable_) {
    if (!stays[number++]) put(offset, before);
  }
  durable_.clear();
  for (const InFlight& operation : in_flight_) {
    if (!operation.write ||
        operation.write->offset + operation.write->length() > options_.size_bytes) {
      continue;
    }
    put_sectors(*operation.write, any_sectors(operation.write->length() / kSectorBytes), true);
  }
  powered_ = false;
}

void FaultyDisk::restore_power() {
  CHECK_MSG(in_flight_.empty(), "the power comes back with calls of before in flight");
  const std::lock_guard lock(mutex_);
  powered_ = true;
  writes_to_power_cut_ = UINT64_MAX;
}

void FaultyDisk::cut_power_after(std::uint64_t writes) {
  const std::lock_guard lock(mutex_);
  writes_to_power_cut_ = writes;
}

bool FaultyDisk::powered() const {
  const std::lock_guard lock(mutex_);
  return powered_;
}

void FaultyDisk::fail_writes(std::size_t count, Remains remains) {
  const std::lock_guard lock(mutex_);
  failing_writes_ = count;
  remains_ = remains;
}

void FaultyDisk::fail_reads(ByteRange range) {
  const std::lock_guard lock(mutex_);
  unreadable_ = range;
}

void FaultyDisk::misdirect_next_write(std::uint64_t offset) {
  CHECK(offset % options_.alignment == 0);
  const std::lock_guard lock(mutex_);
  misdirected_to_ = offset;
}

void FaultyDisk::drop_next_write() {
  const std::lock_guard lock(mutex_);
  dropping_ = true;
}

void FaultyDisk::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

void FaultyDisk::flip_bit(std::uint64_t byte, unsigned bit) {
  const std::lock_guard lock(mutex_);
  std::byte value{};
  copy_out(byte, {&value, 1});
  value ^= std::byte{1} << bit;
  put(byte, {&value, 1});
}

void FaultyDisk::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  put(offset, bytes);
}

std::vector<std::byte> FaultyDisk::bytes(ByteRange range) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> to(range.length);
  copy_out(range.offset, to);
  return to;
}

}  // namespace mariner::test
