// What a connection has sent with a status and its initiator has not acknowledged (RFC
// 7143, 4.2.2.2): kept from error recovery level 1 on, to be sent again when a SNACK asks for it.
//
// A command's answer keeps its data, which is acknowledged with its status: we ask for no data
// acknowledgements. Executor's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "server/iscsi/completion.h"
#include "server/iscsi/pdu.h"

namespace mariner::iscsi {

class Unacknowledged {
 public:
  // The status numbers that are kept follow each other: each kept one is next_stat_sn() of then.
  void keep(std::uint32_t stat_sn, const Bhs& bhs, PayloadSlice data);
  void keep(SentCompletion sent);
  // The initiator has everything before `exp_stat_sn`. A number that cannot be is ignored.
  void acknowledge(std::uint32_t exp_stat_sn);

  // Sends again what `snack` asks for, but R2Ts; or says why it cannot be.
  [[nodiscard]] std::optional<RejectReason> repeat(const SnackRequest& snack,
                                                   const SessionParameters& parameters,
                                                   PduSender& sender) const;
  // True if an answer to this task is kept.
  [[nodiscard]] bool answered(std::uint32_t itt) const { return find(itt) != nullptr; }

  [[nodiscard]] std::size_t size() const { return kept_.size(); }
  // Of data that is kept in memory; of it, of all but answers to commands.
  [[nodiscard]] std::uint64_t bytes() const { return answer_bytes_ + other_bytes_; }
  [[nodiscard]] std::uint64_t other_bytes() const { return other_bytes_; }

 private:
  struct SentPdu {
    std::uint32_t stat_sn = 0;
    Bhs bhs{};
    PayloadSlice data;
  };
  using Kept = std::variant<SentPdu, SentCompletion>;

  [[nodiscard]] const SentCompletion* find(std::uint32_t itt) const;
  [[nodiscard]] std::optional<RejectReason> repeat_statuses(const SnackRequest& snack,
                                                            const SessionParameters& parameters,
                                                            PduSender& sender) const;

  std::deque<Kept> kept_;
  std::uint64_t answer_bytes_ = 0;
  std::uint64_t other_bytes_ = 0;
};

}  // namespace mariner::iscsi
