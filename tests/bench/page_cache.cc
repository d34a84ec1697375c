#include "tests/bench/page_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr index::IndexFileId kFile{};

index::IndexBlockHeader header_of(index::BlockAddress address) {
  return {.address = address, .function = {1}, .version = 1};
}

}  // namespace

PageCache::PageCache(logging::Disk& disk, const Options& options)
    : disk_(disk),
      options_(options),
      slots_max_(std::max(options.bytes_max / options.page_bytes, kPagesMin)) {
  CHECK(options.page_bytes >= index::kIndexBlockBytesMin);
  CHECK(options.page_bytes % disk.alignment() == 0);
  slots_.reserve(slots_max_);
  by_address_.reserve(slots_max_);
}

void PageCache::seal(Address address, std::span<std::byte> page) const {
  index::seal_index_block(header_of(address), kFile, page);
}

void PageCache::write(std::uint64_t offset, std::span<const logging::ConstBytes> parts) {
  const Result<void> written = disk_.write(offset, parts, logging::Durability::kVolatile);
  CHECK_MSG(written.has_value(), to_string(written.error()).c_str());
  ++counts_.writes;
  for (const logging::ConstBytes& part : parts) counts_.bytes_written += part.size();
}

PageCache::Slot& PageCache::free_slot(Address address) {
  if (slots_.size() < slots_max_) {
    by_address_[address.value] = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back({address, Payload::allocate(options_.page_bytes)});
    return slots_.back();
  }
  while (std::exchange(slots_[hand_].used, false)) hand_ = (hand_ + 1) % slots_.size();
  Slot& slot = slots_[hand_];
  if (slot.dirty) {
    seal(slot.address, slot.page.bytes());
    const logging::ConstBytes part = slot.page.bytes();
    write(offset_of(slot.address), {&part, 1});
  }
  by_address_.erase(slot.address.value);
  by_address_[address.value] = static_cast<std::uint32_t>(hand_);
  hand_ = (hand_ + 1) % slots_.size();
  slot.address = address;
  slot.dirty = false;
  return slot;
}

PageCache::Slot& PageCache::slot_of(Address address) {
  const auto found = by_address_.find(address.value);
  if (found != by_address_.end()) {
    Slot& slot = slots_[found->second];
    slot.used = true;
    return slot;
  }
  CHECK(address.value < pages_);
  Slot& slot = free_slot(address);
  const Result<void> read = disk_.read(offset_of(address), slot.page.bytes());
  CHECK_MSG(read.has_value(), to_string(read.error()).c_str());
  ++counts_.reads;
  counts_.bytes_read += options_.page_bytes;
  CHECK(index::check_index_block(header_of(address), kFile, std::as_const(slot.page).bytes()) ==
        index::BlockDamage::kNone);
  return slot;
}

std::span<const std::byte> PageCache::view(Address address) {
  return index::contents_of(std::as_const(slot_of(address).page).bytes());
}

std::span<std::byte> PageCache::change(Address address) {
  Slot& slot = slot_of(address);
  slot.dirty = true;
  return index::contents_of(slot.page.bytes());
}

PageCache::Address PageCache::next_address() {
  CHECK_MSG((pages_ + std::uint64_t{1}) * options_.page_bytes <= disk_.size_bytes(),
            "the index has outgrown its file");
  return {pages_++};
}

PageCache::Address PageCache::add_page() {
  const Address address = next_address();
  Slot& slot = free_slot(address);
  std::memset(slot.page.data(), 0, options_.page_bytes);
  slot.dirty = true;
  return address;
}

PageCache::Loaded PageCache::load_page() {
  const std::size_t pages_max = std::max<std::size_t>(kTransferBytesMax / options_.page_bytes, 1);
  if (!loading_) {
    loading_ = Payload::allocate(pages_max * options_.page_bytes);
    loading_first_ = pages_;
  } else if (pages_ - loading_first_ == pages_max) {
    end_load();
    return load_page();
  }
  const Address address = next_address();
  const std::span<std::byte> page = loading_.bytes().subspan(
      (address.value - loading_first_) * options_.page_bytes, options_.page_bytes);
  std::memset(page.data(), 0, page.size());
  return {address, index::contents_of(page)};
}

void PageCache::end_load() {
  if (!loading_) return;
  const std::size_t bytes = (pages_ - loading_first_) * options_.page_bytes;
  for (std::uint32_t page = loading_first_; page < pages_; ++page) {
    const std::size_t at = (page - loading_first_) * options_.page_bytes;
    seal({page}, loading_.bytes().subspan(at, options_.page_bytes));
  }
  const logging::ConstBytes part = std::as_const(loading_).bytes().first(bytes);
  write(offset_of({loading_first_}), {&part, 1});
  loading_ = {};
}

void PageCache::write_back() {
  std::vector<Slot*> dirty;
  for (Slot& slot : slots_) {
    if (slot.dirty) dirty.push_back(&slot);
  }
  std::ranges::sort(dirty, {}, [](const Slot* slot) { return slot->address.value; });
  std::vector<logging::ConstBytes> parts;
  for (std::size_t i = 0; i < dirty.size(); ++i) {
    Slot& slot = *dirty[i];
    seal(slot.address, slot.page.bytes());
    slot.dirty = false;
    parts.push_back(slot.page.bytes());
    const bool continues = i + 1 < dirty.size() &&
                           dirty[i + 1]->address.value == slot.address.value + 1 &&
                           (parts.size() + 1) * options_.page_bytes <= kTransferBytesMax;
    if (continues) continue;
    write(offset_of(slot.address) - (parts.size() - 1) * options_.page_bytes, parts);
    parts.clear();
  }
  const Result<void> flushed = disk_.flush();
  CHECK_MSG(flushed.has_value(), to_string(flushed.error()).c_str());
}

}  // namespace mariner::bench
