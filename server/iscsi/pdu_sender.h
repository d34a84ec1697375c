// The sending half of a connection: PDUs in, pieces of memory for writev() out.
//
// Numbers each PDU (StatSN, and the session's window), adds padding and digests, and keeps the
// payloads that it points to until they are sent. Data is never copied. Executor's thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/payload.h"
#include "server/iscsi/command_window.h"
#include "server/iscsi/pdu.h"
#include "server/iscsi/ring.h"

namespace mariner::iscsi {

// Walks a list of slices, front to back.
class SliceCursor {
 public:
  explicit SliceCursor(std::span<const PayloadSlice> slices) : slices_(slices) {}

  // The next at most `bytes_max` contiguous bytes. Requires that bytes are left.
  [[nodiscard]] PayloadSlice take(std::size_t bytes_max);
  // Leaves out the next `bytes`.
  void skip(std::size_t bytes) {
    while (bytes > 0) bytes -= take(bytes).length;
  }

 private:
  std::span<const PayloadSlice> slices_;
  std::size_t offset_ = 0;  // in the first of slices_
};

// Whether a PDU takes a status sequence number of its own or only tells the next one (11.4.8 and
// the like).
enum class StatSn : std::uint8_t { kAdvance, kTell };

class PduSender {
 public:
  // `window` must outlive its use here; replaced by set_window().
  explicit PduSender(const CommandWindow& window) : window_(&window) {}

  void set_window(const CommandWindow& window) { window_ = &window; }
  void set_digests(bool header, bool data) {
    header_digest_ = header;
    data_digest_ = data;
  }
  void set_next_stat_sn(std::uint32_t stat_sn) { stat_sn_ = stat_sn; }
  // What the next PDU with a status gets.
  [[nodiscard]] std::uint32_t next_stat_sn() const { return stat_sn_; }

  void send(const Bhs& bhs, StatSn stat_sn) { send(bhs, stat_sn, PayloadSlice{}); }
  void send(const Bhs& bhs, StatSn stat_sn, PayloadSlice data);
  // With the next `bytes` of `data` as its data segment.
  void send(const Bhs& bhs, StatSn stat_sn, SliceCursor& data, std::uint32_t bytes);

  // A PDU that was sent before, under the number that it had.
  void resend(const Bhs& bhs, std::uint32_t stat_sn, SliceCursor& data, std::uint32_t bytes) {
    queue(bhs, stat_sn, data, bytes);
  }
  void resend(const Bhs& bhs, std::uint32_t stat_sn, const PayloadSlice& data);

  // Fills `places` with what is to be sent next; returns how many.
  [[nodiscard]] std::size_t pending(std::span<iovec> places);
  // The first `bytes` of what pending() gave have been sent.
  void sent(std::size_t bytes);

  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  [[nodiscard]] std::size_t queued_pdus() const { return frames_.size(); }
  // Of data segments; an upper bound of what this queue keeps in memory besides headers.
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }

 private:
  // Header, header digest, padding and data digest of one PDU.
  struct Frame {
    std::array<std::byte, kBhsBytes + kDigestBytes + 4 + kDigestBytes> bytes;
  };
  // A contiguous part of the output: of a frame, or of a payload.
  struct Piece {
    const std::byte* data = nullptr;  // null: part of frame `frame`, from `offset`
    std::uint32_t length = 0;
    std::uint32_t offset = 0;
    std::uint64_t frame = 0;
    bool last = false;  // of its frame
    Payload keep;
  };

  void queue(const Bhs& bhs, std::uint32_t stat_sn, SliceCursor& data, std::uint32_t bytes);
  void push_frame_piece(std::uint32_t offset, std::uint32_t length);
  [[nodiscard]] const std::byte* address(const Piece& piece);

  const CommandWindow* window_;
  bool header_digest_ = false;
  bool data_digest_ = false;
  std::uint32_t stat_sn_ = 0;
  Ring<Frame> frames_;
  Ring<Piece> pieces_;
  std::size_t sent_of_front_ = 0;
  std::uint64_t queued_bytes_ = 0;
};

}  // namespace mariner::iscsi
