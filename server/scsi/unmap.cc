#include "server/scsi/unmap.h"

#include <algorithm>

#include "proto/bytes.h"
#include "server/scsi/inquiry.h"

namespace mariner::scsi {

std::variant<Sense, std::vector<Extent>> parse_unmap(const Unmap& command,
                                                     std::span<const std::byte> list,
                                                     const Geometry& geometry) {
  constexpr std::size_t kHeaderBytes = 8;
  constexpr std::size_t kDescriptorBytes = 16;
  if (command.parameter_bytes == 0) return std::vector<Extent>{};  // not an error
  if (command.parameter_bytes < kHeaderBytes || list.size() < command.parameter_bytes) {
    return illegal_request(asc::kParameterListLengthError);
  }
  // An incomplete descriptor at the end is ignored; a list may be cut short by the CDB.
  const std::size_t descriptor_bytes = std::min<std::size_t>(
      load_be<std::uint16_t>(list.data() + 2), command.parameter_bytes - kHeaderBytes);
  const std::size_t count = descriptor_bytes / kDescriptorBytes;
  if (count > kUnmapDescriptorsMax) return invalid_parameter(2);

  std::vector<Extent> extents;
  extents.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* p = list.data() + kHeaderBytes + i * kDescriptorBytes;
    const Extent extent{load_be<std::uint64_t>(p), load_be<std::uint32_t>(p + 8)};
    if (auto sense = check_extent(extent, geometry)) return *std::move(sense);
    if (extent.blocks != 0) extents.push_back(extent);
  }
  return extents;
}

}  // namespace mariner::scsi
