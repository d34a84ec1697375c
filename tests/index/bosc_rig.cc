#include "tests/index/bosc_rig.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::test {

using index::BlockAddress;
using index::BlockCommit;
using index::BlockView;
using index::Modification;

CounterFunction::Change CounterFunction::change(std::uint32_t counter, std::uint64_t add) {
  Change bytes;
  store_le(bytes.data(), counter);
  store_le(bytes.data() + 4, add);
  return bytes;
}

void CounterFunction::add(std::span<std::byte> contents, Modification modification) {
  const auto counter = load_le<std::uint32_t>(modification.data());
  if (counter == kDividing) return;
  CHECK(counter < kCountersPerBlock);
  std::byte* const at = contents.data() + std::size_t{counter} * 8;
  store_le(at, load_le<std::uint64_t>(at) + load_le<std::uint64_t>(modification.data() + 4));
}

void CounterFunction::commit(BlockCommit& commit) const {
  const std::span<std::byte> after = commit.after();
  if (commit.before().empty()) {
    std::ranges::fill(after, std::byte{0});
  } else {
    std::ranges::copy(commit.before(), after.begin());
  }
  commit.pending().for_each([&](Modification modification) {
    if (load_le<std::uint32_t>(modification.data()) == kDividing) {
      std::ranges::fill(commit.add_block(), std::byte{0});
    }
    add(after, modification);
  });
}

void CounterFunction::committed(const BlockCommit& commit) {
  added.insert(added.end(), commit.added().begin(), commit.added().end());
}

bool CounterFunction::apply(std::span<std::byte> contents, Modification modification) {
  if (load_le<std::uint32_t>(modification.data()) == kDividing) return false;
  add(contents, modification);
  return true;
}

void CounterFunction::save(std::span<std::byte> to) const { store_le(to.data(), blocks); }

index::BoscOptions BoscRig::small_store() {
  index::BoscOptions options;
  options.memory_bytes = std::size_t{1} << 20;
  options.cache_bytes = std::size_t{64} << 10;
  options.run_blocks_max = 4;
  options.runs_in_flight = 2;
  return options;
}

BoscRig::BoscRig(const Options& o)
    : options(o), model(o.blocks, std::vector<std::uint64_t>(kCountersPerBlock)) {
  disk =
      std::make_unique<FaultyDisk>(executor, FaultyDisk::Options{.size_bytes = options.disk_bytes,
                                                                 .seed = options.seed,
                                                                 .delay_max = options.delay_max});
  index::IndexShape shape;
  shape.file[0] = std::byte{42};
  shape.block_bytes = 4096;
  shape.group_blocks = options.group_blocks;
  const Result<index::IndexSuperblock> made = index::format_index_file(*disk, shape);
  CHECK(made.has_value());
  superblock = *made;
  open();
}

BoscRig::~BoscRig() {
  if (store) close();
}

void BoscRig::open() {
  Result<std::unique_ptr<index::Bosc>> opened = index::Bosc::open(executor, *disk, options.store);
  CHECK_MSG(opened.has_value(), opened.has_error() ? opened.error().message.c_str() : "");
  store = *std::move(opened);
  store->on_error([this](BlockAddress address, const Error& error) {
    errors.push_back(std::to_string(address.value) + ": " + error.message);
  });
  function = std::make_unique<CounterFunction>();
  function->blocks = options.blocks;
  const bool is_new = store->saved(kCounters).empty();
  CHECK(is_new || load_le<std::uint32_t>(store->saved(kCounters).data()) == options.blocks);
  store->add_function(kCounters, *function);
  for (std::uint32_t i = 0; is_new && i < options.blocks; ++i) {
    const Result<BlockAddress> address = store->allocate(kCounters, i);
    CHECK(address.has_value() && address->value == i);
  }
  for (std::uint64_t number = store->frontier() + 1; number <= log_.size(); ++number) {
    const Entry& entry = log_[number - 1];
    store->modify({entry.block}, CounterFunction::change(entry.counter, entry.what), number);
    ++replayed;
  }
  store->set_used_through(log_.size());
}

void BoscRig::close() {
  bool drained = false;
  store->drain([&] { drained = true; });
  executor.run_until_idle();
  CHECK(drained);
  store.reset();
  function.reset();
}

void BoscRig::add(std::uint32_t block, std::uint32_t counter, std::uint64_t what) {
  if (counter != CounterFunction::kDividing) model[block][counter] += what;
  log_.push_back({block, counter, what});
  CHECK(store->modify({block}, CounterFunction::change(counter, what), log_.size()));
  store->set_used_through(log_.size());
}

Result<void> BoscRig::commit_all() {
  std::optional<Result<void>> result;
  store->commit_all([&](Result<void> r) { result = std::move(r); });
  turn_until([&] { return result.has_value(); });
  return *result;
}

void BoscRig::turn(std::size_t turns) {
  for (std::size_t i = 0; i < turns; ++i) executor.turn();
}

void BoscRig::crash() {
  disk->cut_power();
  close();
  disk->restore_power();
  open();
}

void BoscRig::restart() {
  close();
  open();
}

Result<std::vector<std::uint64_t>> BoscRig::read(std::uint32_t block) {
  std::vector<std::byte> counters(std::size_t{kCountersPerBlock} * 8);
  for (;;) {
    std::optional<Result<bool>> answer;
    store->query(
        {block},
        [&](const BlockView& view) {
          if (!view.complete) return false;
          std::ranges::fill(counters, std::byte{0});
          if (!view.contents.empty()) {
            std::ranges::copy(view.contents.first(counters.size()), counters.begin());
          }
          view.pending.for_each([&](Modification m) { CounterFunction::add(counters, m); });
          return true;
        },
        [&](Result<bool> r) { answer = std::move(r); });
    turn_until([&] { return answer.has_value(); });
    if (!*answer) return answer->error();
    if (**answer) break;  // else committed meanwhile
  }
  std::vector<std::uint64_t> values(kCountersPerBlock);
  std::memcpy(values.data(), counters.data(), counters.size());
  return values;
}

std::string BoscRig::compare() {
  for (std::uint32_t block = 0; block < options.blocks; ++block) {
    const Result<std::vector<std::uint64_t>> found = read(block);
    const std::string name = "block " + std::to_string(block);
    if (!found) return name + ": " + found.error().message;
    for (std::uint32_t i = 0; i < kCountersPerBlock; ++i) {
      if ((*found)[i] != model[block][i]) {
        return name + ", counter " + std::to_string(i) + ": " + std::to_string((*found)[i]) +
               " is there, " + std::to_string(model[block][i]) + " was expected";
      }
    }
  }
  return "";
}

std::optional<BoscRig::Place> BoscRig::place_of(std::uint64_t offset) const {
  const std::uint64_t from = superblock.offset_of({0}, 0);
  if (offset < from) return std::nullopt;
  const std::uint64_t number = (offset - from) / superblock.block_bytes;
  const std::uint64_t group = number / (2 * superblock.group_blocks);
  const std::uint64_t within = number % (2 * superblock.group_blocks);
  const Place place{static_cast<std::uint32_t>(group * superblock.group_blocks +
                                               within % superblock.group_blocks),
                    static_cast<unsigned>(within / superblock.group_blocks)};
  CHECK(superblock.offset_of({place.block}, place.place) == offset);
  return place;
}

std::string BoscRig::runs_since(std::size_t from) const {
  std::string text;
  for (std::size_t i = from; i < disk->writes().size(); ++i) {
    const ByteRange& write = disk->writes()[i];
    const std::optional<Place> place = place_of(write.offset);
    if (!place) continue;
    text += std::to_string(place->block) + "-" +
            std::to_string(place->block + write.length / superblock.block_bytes - 1) + " ";
  }
  return text;
}

std::unique_ptr<BoscRig> written_rig(const BoscRig::Options& options) {
  auto rig = std::make_unique<BoscRig>(options);
  for (std::uint32_t i = 0; i < options.blocks; ++i) rig->add(i, 0);
  CHECK(rig->commit_all());
  rig->restart();
  return rig;
}

}  // namespace mariner::test
