// The past of a volume for programs beside the daemon: one reading (server/admin/API.md, "Reading
// the past"), each question waited for. Of a long one the parts are asked on some connections, so
// that the daemon looks one up while its disk reads others.
//
// A reading that has ended, because nothing was asked for a while or the daemon was started anew,
// is opened again with the same beginning, as long as the history has that: moments never change,
// so nobody notices. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "server/admin/past_wire.h"
#include "server/client/admin_client.h"
#include "server/client/http_session.h"

namespace mariner::client {

class PastClient {
 public:
  struct Options {
    std::string socket = kDefaultSocket;
    std::string volume;
    api::MomentSpec from{};  // unset: the oldest moment there is
    // When it is opened again and the history has its beginning no more: from the oldest moment
    // that there is then. (Who goes on for longer than a window.)
    bool moves_on = false;
    std::chrono::seconds timeout = std::chrono::minutes(1);
  };

  // Errors are those that the daemon answers, and kUnavailable if it does not; here and below.
  [[nodiscard]] static Result<PastClient> open(const Options& options);
  ~PastClient();  // ends the reading
  PastClient(PastClient&&) noexcept = default;
  PastClient& operator=(PastClient&&) = delete;

  // As the daemon said last: when it was opened, or asked by look().
  [[nodiscard]] const api::Past& past() const { return past_; }
  Result<void> look();

  // Of a time or of a number.
  [[nodiscard]] Result<api::Moment> moment(const api::MomentSpec& at);
  // Fills `to` (kBlockBytes for each question).
  [[nodiscard]] Result<void> read(std::span<const admin::BlockQuestion> questions,
                                  std::span<std::byte> to);
  // The next read() will begin with these questions: they are asked now. What else is asked
  // instead, waits for their answers.
  void expect(std::vector<admin::BlockQuestion> questions);
  // The blocks that may differ between two moments: ascending, with gaps between them.
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from, SequenceNumber to);
  // Blocks from `first` on, behind which there are others, that may hold something other than zeros
  // at a moment. (All of a volume may be many parts.)
  [[nodiscard]] Result<admin::StoredPart> stored(SequenceNumber at, Lbn first);
  // What changed each of `blocks` (ascending) in (from, to], by block and then by sequence.
  [[nodiscard]] Result<std::vector<admin::BlockVersion>> versions(std::span<const Lbn> blocks,
                                                                  SequenceNumber from,
                                                                  SequenceNumber to);

 private:
  explicit PastClient(const Options& options);
  Result<void> open_reading();
  Result<void> open_from();  // as the options say
  // `what` of the reading; see HttpSession::call().
  Result<std::string> ask(HttpCall call, const std::string& what, std::span<std::byte> to = {});
  Result<std::string> ask_once(const HttpCall& call, std::span<std::byte> to);
  void begin_part(std::span<const admin::BlockQuestion> questions, std::size_t part);
  // Waits for what was expected, and forgets it.
  void drop_expected();
  // `begun`: parts that were asked already; `done`: how many were answered before an error.
  Result<void> read_parts(std::span<const admin::BlockQuestion> questions, std::span<std::byte> to,
                          std::size_t begun, std::size_t& done);
  static Result<std::string> body_of(Result<HttpAnswer> answer);

  Options options_;
  std::vector<HttpSession>
      sessions_;  // the first one is for all; the others are for long questions
  std::vector<admin::BlockQuestion> expected_;
  std::size_t expected_parts_ = 0;  // of these, that were asked
  api::Past past_;
};

}  // namespace mariner::client
