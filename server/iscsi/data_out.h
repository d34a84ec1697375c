// The data-out of one command: which bytes may come next, and which to solicit (RFC 7143, 4.2.5 and
// 11.7-8).
//
// First the unsolicited bytes (immediate data, then Data-Out PDUs without an R2T), then bursts that
// R2Ts solicit. With DataPDUInOrder and DataSequenceInOrder every byte has one valid place in the
// stream, so that a single offset says what has arrived.
//
// A PDU that is damaged, or out of sequence because another was, is lost with the rest of its
// sequence. From error recovery level 1 on the lost bytes are asked for again once the sequence has
// ended (7.8: a recovery R2T); at level 0 the command fails, once the initiator has sent everything
// that it was going to (not before, as it still uses the task tag). What breaks the negotiated
// limits is an error of the connection.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/error.h"
#include "server/iscsi/negotiation.h"
#include "server/iscsi/pdu.h"

namespace mariner::iscsi {

class DataOutTransfer {
 public:
  // What one R2T asks for.
  struct Request {
    std::uint32_t r2t_sn = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };

  DataOutTransfer() = default;

  // A command that can use the first `wanted` of the bytes that its initiator has. kProtocol if its
  // immediate data, or the announcement of more unsolicited data, breaks the session's parameters.
  [[nodiscard]] Result<void> begin(const ScsiCommand& command, std::uint32_t immediate_bytes,
                                   std::uint32_t wanted, const SessionParameters& parameters);

  // What is to be done with the data of a Data-Out PDU with `bytes` of it; `solicited`: it answers
  // the R2T current_request(). kProtocol if it may not come at all.
  enum class Use : std::uint8_t { kTake, kDrop };
  [[nodiscard]] Result<Use> check(const DataOut& pdu, std::uint32_t bytes, bool solicited) const;
  // That PDU, which check() let pass, has come whole; `good`: its data is as it was sent.
  void arrived(const DataOut& pdu, std::uint32_t bytes, bool solicited, bool good);

  // The next R2T to send, if one is due and `outstanding_max` allows it.
  [[nodiscard]] std::optional<Request> next_request(std::uint32_t outstanding_max);

  // The R2TSN that arriving solicited data must belong to.
  [[nodiscard]] std::uint32_t current_request() const { return requests_done_; }
  // That R2T again, if it has been sent and its data has not all come.
  [[nodiscard]] std::optional<Request> repeat_request() const;

  [[nodiscard]] std::uint32_t wanted() const { return wanted_; }
  [[nodiscard]] std::uint32_t received() const { return received_; }
  [[nodiscard]] bool unsolicited_open() const { return unsolicited_open_; }
  // Every byte that the command can use is here, and no other is under way.
  [[nodiscard]] bool complete() const {
    if (unsolicited_open_) return false;
    return failed_ ? requests_done_ == requests_sent_ : received_ >= wanted_;
  }
  // Bytes are missing for ever.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  // The bytes that an R2T asks for which begins there.
  [[nodiscard]] std::uint32_t burst_at(std::uint32_t offset) const;
  [[nodiscard]] bool in_sequence(const DataOut& pdu) const;
  void lose();
  void end_sequence(bool solicited);

  std::uint32_t wanted_ = 0;
  std::uint32_t received_ = 0;         // also the only valid offset of the next PDU
  std::uint32_t unsolicited_max_ = 0;  // min(FirstBurstLength, expected length)
  std::uint32_t burst_bytes_max_ = 0;
  std::uint32_t sequence_from_ = 0;  // where the burst begins that is arriving
  std::uint32_t asked_to_ = 0;       // the end of what R2Ts have asked for, or need not
  std::uint32_t requests_sent_ = 0;
  std::uint32_t requests_done_ = 0;
  std::uint32_t data_sn_ = 0;  // of the next PDU of the current sequence
  std::uint32_t recoveries_left_ = 0;
  bool unsolicited_open_ = false;
  bool damaged_ = false;  // the rest of the current sequence is lost, and asked for again
  bool failed_ = false;
};

}  // namespace mariner::iscsi
