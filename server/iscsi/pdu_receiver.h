// The receiving half of a connection: bytes of the stream in, whole PDUs out.
//
// Tells the socket where the next bytes go, so that the data of a large write lands at its place in
// the command's payload without a copy. Where data digests are on, the CRCs of the payload's blocks
// that one data segment fills come of verifying it, and stay with the payload if its digest is
// good.
//
// A sink that wants no PDU for now holds the rest of what was received back: a few bytes may ask
// for very long answers. Sans I/O; Executor's thread.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/payload.h"
#include "server/iscsi/pdu.h"

namespace mariner::iscsi {

// Where a data segment goes: its first `length` bytes to `payload` from `offset` on. The rest is
// dropped (but counts for the digest).
struct Placement {
  Payload payload;
  std::size_t offset = 0;
  std::size_t length = 0;
};

// Hears of PDUs. Returning false stops the receiver for good.
class PduSink {
 public:
  virtual ~PduSink() = default;

  // Before each header; false: it is held back until go_on().
  [[nodiscard]] virtual bool wants_pdu() const = 0;
  // The first 48 bytes of a header whose additional segments have not arrived yet: a chance to stop
  // before waiting for what nobody may mean to send. May come more than once; unverified.
  [[nodiscard]] virtual bool on_basic_header(const Bhs& bhs) = 0;
  // A header with a good digest. `place` says where its data goes; empty: dropped.
  [[nodiscard]] virtual bool on_header(const Bhs& bhs, std::span<const std::byte> ahs,
                                       Placement& place) = 0;
  // The data segment of the last header has arrived (also if there is none).
  [[nodiscard]] virtual bool on_pdu(bool data_digest_good) = 0;
  virtual void on_header_digest_error() = 0;
};

class PduReceiver {
 public:
  // From the next header on.
  void set_digests(bool header, bool data) {
    header_digest_ = header;
    data_digest_ = data;
  }

  // Where the next bytes of the stream go, in order: at most two places. Returns how many; none
  // while PDUs are held back. To be followed by received() on the same thread, with 0 if nothing is
  // to come after all.
  [[nodiscard]] std::size_t prepare(std::span<iovec> places);

  // How many bytes it takes until received() has more to do than to note them, as far as the last
  // prepare() knew: what is left of a data segment that is received in place, or 1.
  [[nodiscard]] std::size_t awaited_bytes() const {
    return std::max<std::size_t>(direct_bytes_, 1);
  }

  // `bytes` have been put there. Hands what is complete to `sink`.
  void received(std::size_t bytes, PduSink& sink);

  // PDUs are here that the sink did not want.
  [[nodiscard]] bool holds_back() const { return holds_back_; }
  // It wants them now. Requires that some are held back.
  void go_on(PduSink& sink);

  [[nodiscard]] bool stopped() const { return stage_ == Stage::kStopped; }
  // True between two PDUs: nothing of the next one is here.
  [[nodiscard]] bool between_pdus() const { return stage_ == Stage::kHeader && begin_ == end_; }

 private:
  enum class Stage : std::uint8_t { kHeader, kData, kTrailer, kStopped };

  [[nodiscard]] std::size_t buffered() const { return end_ - begin_; }
  void take_all(PduSink& sink);
  // Each consumes what it can; false when it needs more bytes or the sink has stopped us.
  bool take_header(PduSink& sink);
  bool take_data();
  bool take_trailer(PduSink& sink);
  void place_data(std::span<const std::byte> bytes);
  void digest(std::span<const std::byte> bytes);
  void keep_block_crcs(bool good);
  [[nodiscard]] std::size_t header_bytes() const;   // of the header now arriving, as far as known
  [[nodiscard]] std::size_t trailer_bytes() const;  // of the current PDU
  [[nodiscard]] std::size_t look_ahead_bytes() const;

  Stage stage_ = Stage::kHeader;
  bool header_digest_ = false;
  bool data_digest_ = false;
  bool holds_back_ = false;
  bool large_ = false;         // the last data segment was a large one
  unsigned dataless_run_ = 0;  // PDUs without data since then
  CommonHeader header_;
  Placement place_;
  std::size_t data_done_ = 0;     // bytes of the data segment that have arrived
  std::size_t direct_bytes_ = 0;  // of them, asked for in place by the last prepare()
  std::uint32_t crc_ = 0;         // of the data segment so far, without the block in progress
  std::uint32_t block_crc_ = 0;   // of that block, if the segment fills it; 0 before its first byte
  std::vector<std::uint32_t> block_crcs_;  // of those that it has filled, in order
  // Look-ahead; the bytes [begin_, end_) are valid. Null while there are none and none are read.
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace mariner::iscsi
