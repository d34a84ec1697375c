// The past of a volume of a daemon beside this process, as its admin API tells it.
//
// moment_of() of a time to come, or before all that the daemon keeps: kOutsideWindow. A rollback is
// a write, to the blocks that it gave other contents; changed() may name blocks that it left as
// they were. The volume's size is what it was at the last reach(): it may grow, of earlier moments
// with zeros.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ifsck/past.h"
#include "server/client/admin_client.h"
#include "server/client/past_client.h"

namespace mariner::ifsck {

class RemotePast final : public Past {
 public:
  // Errors as of PastClient, here and below.
  [[nodiscard]] static Result<RemotePast> open(const client::PastClient::Options& options);

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] Result<Reach> reach() override;
  [[nodiscard]] Result<SequenceNumber> moment_of(VersionTime time) override;
  // The same of any question that the daemon answers.
  [[nodiscard]] Result<SequenceNumber> moment_of(const api::MomentSpec& spec);
  // Never given twice by one daemon.
  [[nodiscard]] std::uint32_t volume_id() const { return client_.past().volume_id(); }
  [[nodiscard]] Result<VersionTime> time_of(SequenceNumber sequence) override;
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override;
  void expect(std::span<const Question> questions) override;
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override;
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override;
  [[nodiscard]] Result<SequenceNumber> first_break(SequenceNumber from, SequenceNumber to) override;

 private:
  RemotePast(client::PastClient client, const client::PastClient::Options& options)
      : client_(std::move(client)),
        size_bytes_(client_.past().size_bytes()),
        admin_(options.socket),
        volume_(options.volume) {}

  client::PastClient client_;
  std::uint64_t size_bytes_;
  client::AdminClient admin_;
  std::string volume_;
};

}  // namespace mariner::ifsck
