#include "server/iscsi/pdu_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"
#include "proto/crc32c.h"
#include "proto/payload_crc.h"

namespace mariner::iscsi {
namespace {

constexpr std::uint32_t kTrailerAt = kBhsBytes + kDigestBytes;

}  // namespace

PayloadSlice SliceCursor::take(std::size_t bytes_max) {
  while (!slices_.empty() && offset_ == slices_.front().length) {
    slices_ = slices_.subspan(1);
    offset_ = 0;
  }
  CHECK(!slices_.empty());
  const PayloadSlice& slice = slices_.front();
  const std::size_t length = std::min(bytes_max, slice.length - offset_);
  PayloadSlice taken{.payload = slice.payload, .offset = slice.offset + offset_, .length = length};
  offset_ += length;
  return taken;
}

void PduSender::send(const Bhs& bhs, StatSn stat_sn, PayloadSlice data) {
  const auto bytes = static_cast<std::uint32_t>(data.length);
  SliceCursor cursor(std::span(&data, 1));
  send(bhs, stat_sn, cursor, bytes);
}

void PduSender::send(const Bhs& bhs, StatSn stat_sn, SliceCursor& data, std::uint32_t bytes) {
  queue(bhs, stat_sn_, data, bytes);
  if (stat_sn == StatSn::kAdvance) ++stat_sn_;
}

void PduSender::resend(const Bhs& bhs, std::uint32_t stat_sn, const PayloadSlice& data) {
  SliceCursor cursor(std::span(&data, 1));
  queue(bhs, stat_sn, cursor, static_cast<std::uint32_t>(data.length));
}

void PduSender::queue(const Bhs& bhs, std::uint32_t stat_sn, SliceCursor& data,
                      std::uint32_t bytes) {
  Frame& frame = frames_.push({});
  Bhs stamped = bhs;
  stamp_data_bytes(stamped, bytes);
  stamp_sequence(stamped, {.stat_sn = stat_sn,
                           .exp_cmd_sn = window_->exp_cmd_sn(),
                           .max_cmd_sn = window_->max_cmd_sn()});
  std::memcpy(frame.bytes.data(), stamped.data(), kBhsBytes);
  std::uint32_t header_bytes = kBhsBytes;
  if (header_digest_) {
    store_le(&frame.bytes[kBhsBytes], crc32c(stamped));
    header_bytes += kDigestBytes;
  }
  push_frame_piece(0, header_bytes);

  std::uint32_t crc = 0;
  for (std::uint32_t left = bytes; left > 0;) {
    PayloadSlice slice = data.take(left);
    if (data_digest_) crc = payload_crc32c(slice, crc);
    left -= static_cast<std::uint32_t>(slice.length);
    queued_bytes_ += slice.length;
    pieces_.push({.data = slice.payload.data() + slice.offset,
                  .length = static_cast<std::uint32_t>(slice.length),
                  .offset = 0,
                  .frame = frames_.end() - 1,
                  .last = false,
                  .keep = std::move(slice.payload)});
  }
  std::uint32_t trailer_bytes = (4 - bytes % 4) % 4;  // padding, zero as the frame is
  if (data_digest_ && bytes > 0) {
    const std::span<const std::byte> padding(&frame.bytes[kTrailerAt], trailer_bytes);
    store_le(&frame.bytes[kTrailerAt + trailer_bytes], crc32c(padding, crc));
    trailer_bytes += kDigestBytes;
  }
  if (trailer_bytes > 0) push_frame_piece(kTrailerAt, trailer_bytes);
  pieces_[pieces_.end() - 1].last = true;
}

void PduSender::push_frame_piece(std::uint32_t offset, std::uint32_t length) {
  pieces_.push({.data = nullptr,
                .length = length,
                .offset = offset,
                .frame = frames_.end() - 1,
                .last = false,
                .keep = {}});
}

const std::byte* PduSender::address(const Piece& piece) {
  return piece.data != nullptr ? piece.data : frames_[piece.frame].bytes.data() + piece.offset;
}

std::size_t PduSender::pending(std::span<iovec> places) {
  const std::size_t count = std::min(places.size(), pieces_.size());
  std::size_t skip = sent_of_front_;
  for (std::size_t i = 0; i < count; ++i) {
    const Piece& piece = pieces_[pieces_.begin() + i];
    // writev() reads only; iovec has no const.
    places[i] = {.iov_base = const_cast<std::byte*>(address(piece)) + skip,
                 .iov_len = piece.length - skip};
    skip = 0;
  }
  return count;
}

void PduSender::sent(std::size_t bytes) {
  while (bytes > 0) {
    const Piece& front = pieces_.front();
    const std::size_t left = front.length - sent_of_front_;
    if (bytes < left) {
      sent_of_front_ += bytes;
      return;
    }
    bytes -= left;
    sent_of_front_ = 0;
    if (front.data != nullptr) queued_bytes_ -= front.length;
    if (front.last) frames_.pop();
    pieces_.pop();
  }
}

}  // namespace mariner::iscsi
