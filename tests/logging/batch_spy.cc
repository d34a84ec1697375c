#include "tests/logging/batch_spy.h"

namespace mariner::logging::test {

std::optional<BatchSpy::Batch> BatchSpy::at(std::uint64_t sector) const {
  const auto found = batches_.find(sector);
  if (found == batches_.end()) return std::nullopt;
  return found->second;
}

void BatchSpy::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                           Durability durability, Completion done) {
  // In front of a track's first batch its header may stand.
  const ConstBytes headers = parts.front();
  for (std::size_t at = 0; at < std::min<std::size_t>(2 * format_.sector_bytes, headers.size());
       at += format_.sector_bytes) {
    const std::optional<BatchHeader> header = peek_batch(headers.subspan(at), format_);
    if (!header) continue;
    batches_[header->sector] = {header->batch_number,
                                {header->sector * format_.sector_bytes,
                                 std::uint64_t{header->total_sectors} * format_.sector_bytes}};
    break;
  }
  disk_.async_write(offset, std::move(parts), durability, std::move(done));
}

}  // namespace mariner::logging::test
