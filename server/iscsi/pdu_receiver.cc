// How far to read ahead. A PDU with little data is best read together with its successors, in one
// call, and copied out of the look-ahead buffer: 4 KiB copied cost less than a system call. A large
// data segment is better received in place. Both cannot be had at once, because a header must be
// known before its data's place is. So: greedily, until a large data segment has been seen; after
// one, only its trailer and the next header are read ahead, so that the next PDU's data, which is
// most likely large too, is received in place as a whole. A small data segment ends that, and so do
// several PDUs without any: reads, whose commands are best read together.
#include "server/iscsi/pdu_receiver.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::iscsi {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr std::size_t kLargeSegmentBytes = 16 * 1024;
constexpr unsigned kDatalessRun = 4;
static_assert(kBufferBytes > kBhsBytes + kAhsBytesMax + kDigestBytes);

// The buffers that no receiver of this thread needs at the moment. A receiver has one only between
// prepare() and received(), or while part of a PDU is in it: a thousand idle connections take none.
// Sockets that are lent to threads hold one each meanwhile.
class SpareBuffers {
 public:
  std::unique_ptr<std::byte[]> take() {
    if (spare_.empty()) return std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
    auto buffer = std::move(spare_.back());
    spare_.pop_back();
    return buffer;
  }
  void give(std::unique_ptr<std::byte[]> buffer) {
    if (spare_.size() < kSpareMax) spare_.push_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t kSpareMax = 64;
  std::vector<std::unique_ptr<std::byte[]>> spare_;
};
thread_local SpareBuffers spare_buffers;

}  // namespace

std::size_t PduReceiver::prepare(std::span<iovec> places) {
  CHECK(places.size() >= 2);
  direct_bytes_ = 0;
  if (stage_ == Stage::kStopped || holds_back_) return 0;
  if (!buffer_) buffer_ = spare_buffers.take();
  // What is buffered is always an incomplete header or trailer: moving it is cheap.
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  std::size_t count = 0;
  if (stage_ == Stage::kData && data_done_ < place_.length) {
    CHECK(buffered() == 0);
    direct_bytes_ = place_.length - data_done_;
    places[count++] = {.iov_base = place_.payload.data() + place_.offset + data_done_,
                       .iov_len = direct_bytes_};
  }
  const std::size_t ahead = std::min(look_ahead_bytes(), kBufferBytes - end_);
  if (ahead > 0) places[count++] = {.iov_base = buffer_.get() + end_, .iov_len = ahead};
  return count;
}

std::size_t PduReceiver::look_ahead_bytes() const {
  if (!large_) return kBufferBytes;
  const std::size_t next_header = kBhsBytes + (header_digest_ ? kDigestBytes : 0);
  switch (stage_) {
    case Stage::kHeader: return std::max(header_bytes(), next_header) - buffered();
    case Stage::kData:
      return header_.data_bytes - std::max(data_done_, place_.length) + trailer_bytes() +
             next_header;
    case Stage::kTrailer: return trailer_bytes() - buffered() + next_header;
    case Stage::kStopped: break;
  }
  return 0;
}

void PduReceiver::received(std::size_t bytes, PduSink& sink) {
  const std::size_t direct = std::min(bytes, direct_bytes_);
  if (direct > 0) {
    if (data_digest_) digest({place_.payload.data() + place_.offset + data_done_, direct});
    data_done_ += direct;
    direct_bytes_ -= direct;
  }
  end_ += bytes - direct;
  CHECK(end_ <= kBufferBytes);
  take_all(sink);
}

void PduReceiver::go_on(PduSink& sink) {
  CHECK(holds_back_);
  take_all(sink);
}

void PduReceiver::take_all(PduSink& sink) {
  for (bool more = true; more;) {
    switch (stage_) {
      case Stage::kHeader: more = take_header(sink); break;
      case Stage::kData: more = take_data(); break;
      case Stage::kTrailer: more = take_trailer(sink); break;
      case Stage::kStopped: more = false; break;
    }
  }
  if (buffered() > 0 || !buffer_) return;
  begin_ = end_ = 0;
  spare_buffers.give(std::move(buffer_));
}

std::size_t PduReceiver::header_bytes() const {
  const std::size_t digest = header_digest_ ? kDigestBytes : 0;
  if (buffered() < kBhsBytes) return kBhsBytes + digest;
  return kBhsBytes + std::to_integer<std::size_t>(buffer_[begin_ + 4]) * 4 + digest;
}

std::size_t PduReceiver::trailer_bytes() const {
  if (header_.data_bytes == 0) return 0;
  return header_.padding_bytes() + (data_digest_ ? kDigestBytes : 0);
}

bool PduReceiver::take_header(PduSink& sink) {
  if (buffered() < kBhsBytes) return false;
  holds_back_ = !sink.wants_pdu();
  if (holds_back_) return false;
  const std::size_t bytes = header_bytes();
  if (buffered() < bytes) {
    Bhs basic;
    std::memcpy(basic.data(), buffer_.get() + begin_, kBhsBytes);
    if (!sink.on_basic_header(basic)) stage_ = Stage::kStopped;
    return false;
  }
  const std::span<const std::byte> all(buffer_.get() + begin_, bytes);
  const auto covered = header_digest_ ? all.first(bytes - kDigestBytes) : all;
  begin_ += bytes;
  if (header_digest_ && load_le<std::uint32_t>(all.data() + covered.size()) != crc32c(covered)) {
    stage_ = Stage::kStopped;
    sink.on_header_digest_error();
    return false;
  }
  Bhs bhs;
  std::memcpy(bhs.data(), covered.data(), kBhsBytes);
  header_ = parse_common(bhs);
  place_ = {};
  data_done_ = 0;
  crc_ = 0;
  block_crcs_.clear();
  if (!sink.on_header(bhs, covered.subspan(kBhsBytes), place_)) {
    stage_ = Stage::kStopped;
    return false;
  }
  CHECK(place_.length <= header_.data_bytes &&
        place_.offset + place_.length <= place_.payload.size());
  stage_ = Stage::kData;
  return true;
}

bool PduReceiver::take_data() {
  const std::size_t bytes = std::min<std::size_t>(buffered(), header_.data_bytes - data_done_);
  if (bytes > 0) {
    place_data({buffer_.get() + begin_, bytes});
    begin_ += bytes;
  }
  if (data_done_ < header_.data_bytes) return false;
  stage_ = Stage::kTrailer;
  return true;
}

void PduReceiver::place_data(std::span<const std::byte> bytes) {
  if (data_digest_) digest(bytes);
  if (data_done_ < place_.length) {
    const std::size_t kept = std::min(bytes.size(), place_.length - data_done_);
    std::memcpy(place_.payload.data() + place_.offset + data_done_, bytes.data(), kept);
  }
  data_done_ += bytes.size();
}

// The next bytes of the data segment: once over each of them, for its digest and for the log.
void PduReceiver::digest(std::span<const std::byte> bytes) {
  // In bytes of the payload. What the segment fills are the blocks within [first, last).
  const std::size_t end = place_.offset + place_.length;
  const std::size_t first = (place_.offset + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const std::size_t last = end / kBlockBytes * kBlockBytes;
  for (std::size_t at = place_.offset + data_done_; !bytes.empty();) {
    const bool in_block = first <= at && at < last;
    std::size_t stop = at < first ? first : SIZE_MAX;
    if (in_block) stop = (at / kBlockBytes + 1) * kBlockBytes;
    const auto piece = bytes.first(std::min(bytes.size(), stop - at));
    bytes = bytes.subspan(piece.size());
    at += piece.size();
    if (!in_block) {
      crc_ = crc32c(piece, crc_);
      continue;
    }
    block_crc_ = crc32c(piece, block_crc_);
    if (at < stop) return;
    block_crcs_.push_back(block_crc_);
    crc_ = crc32c_combine(crc_, std::exchange(block_crc_, 0), kBlockBytes);
  }
}

// What the segment has written to has no CRC but those of the segment's own blocks, and these only
// if its digest is good: a damaged one is written over by what comes again, in pieces of any size.
void PduReceiver::keep_block_crcs(bool good) {
  const auto blocks_to = [](std::size_t end) { return (end + kBlockBytes - 1) / kBlockBytes; };
  place_.payload.forget_block_crcs(place_.offset / kBlockBytes,
                                   blocks_to(place_.offset + place_.length));
  if (!good) return;
  std::size_t block = blocks_to(place_.offset);
  for (const std::uint32_t crc : block_crcs_) place_.payload.set_block_crc(block++, crc);
}

bool PduReceiver::take_trailer(PduSink& sink) {
  const std::size_t bytes = trailer_bytes();
  if (buffered() < bytes) return false;
  bool good = true;
  if (data_digest_ && bytes > 0) {
    const std::byte* const trailer = buffer_.get() + begin_;
    const std::size_t padding = bytes - kDigestBytes;
    good = load_le<std::uint32_t>(trailer + padding) == crc32c({trailer, padding}, crc_);
  }
  begin_ += bytes;
  if (data_digest_ && place_.length > 0) keep_block_crcs(good);
  if (header_.data_bytes > 0) {
    large_ = header_.data_bytes >= kLargeSegmentBytes;
    dataless_run_ = 0;
  } else if (large_ && ++dataless_run_ == kDatalessRun) {
    large_ = false;
  }
  place_ = {};
  stage_ = Stage::kHeader;
  if (sink.on_pdu(good)) return true;
  stage_ = Stage::kStopped;
  return false;
}

}  // namespace mariner::iscsi
