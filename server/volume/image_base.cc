#include "server/volume/image_base.h"

#include <cstring>
#include <memory>
#include <utility>

namespace mariner::volume {
namespace {

// A read of several parts: the first error counts.
struct Parts {
  std::size_t waiting = 1;
  Result<void> result;
  Done done;

  static void finished(const std::shared_ptr<Parts>& parts, const Result<void>& result) {
    if (!result && parts->result) parts->result = result;
    if (--parts->waiting == 0) parts->done(std::move(parts->result));
  }
};

}  // namespace

void ImageBase::read(BlockRange range, std::span<std::byte> to, Done done) {
  auto parts = std::make_shared<Parts>();
  parts->done = std::move(done);
  map_.visit(range, [&](BlockRange part, bool in_image) {
    const std::span<std::byte> part_to =
        to.subspan((part.first - range.first).bytes(), part.count.bytes());
    if (!in_image) {
      std::memset(part_to.data(), 0, part_to.size());
      return;
    }
    if (image_.try_read(part.first.byte_offset(), part_to)) return;
    ++parts->waiting;
    image_.async_read(part.first.byte_offset(), part_to,
                      [parts](const Result<void>& result) { Parts::finished(parts, result); });
  });
  Parts::finished(parts, {});
}

}  // namespace mariner::volume
