#include "tests/logging/batch_spy.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::logging::test {

std::optional<BatchSpy::Batch> BatchSpy::holding(std::uint64_t sequence,
                                                 std::uint64_t sector) const {
  const auto found = std::find_if(batches_.rbegin(), batches_.rend(), [&](const Batch& batch) {
    return batch.range.offset == sector * format_.sector_bytes &&
           std::ranges::find(batch.sequences, sequence) != batch.sequences.end();
  });
  if (found == batches_.rend()) return std::nullopt;
  return *found;
}

std::vector<BatchSpy::Batch> BatchSpy::namesakes(const Batch& batch) const {
  std::vector<Batch> others;
  for (const Batch& each : batches_) {
    if (each.number == batch.number && each.begun != batch.begun) others.push_back(each);
  }
  return others;
}

void BatchSpy::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                           Durability durability, Completion done) {
  // In front of a track's first batch its header may stand.
  const ConstBytes headers = parts.front();
  for (std::size_t at = 0; at < std::min<std::size_t>(2 * format_.sector_bytes, headers.size());
       at += format_.sector_bytes) {
    const std::optional<BatchHeader> header = peek_batch(headers.subspan(at), format_);
    if (!header) continue;
    const std::uint32_t bytes = format_.sector_bytes;
    Batch batch{header->batch_number,
                {header->sector * bytes, std::uint64_t{header->total_sectors} * bytes},
                {},
                batches_.size()};
    const auto parsed = parse_batch(
        headers.subspan(at, std::size_t{header->header_sectors} * bytes), format_, header->sector);
    CHECK(parsed.has_value());
    for (const UnpackedRecord& unpacked : parsed->records) {
      batch.sequences.push_back(unpacked.record.sequence.value);
    }
    batches_.push_back(std::move(batch));
    break;
  }
  disk_->async_write(offset, std::move(parts), durability, std::move(done));
}

}  // namespace mariner::logging::test
