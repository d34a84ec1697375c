// --consistent: what makes a moment of a volume a sound file system is found by ifsck, and handed
// to the daemon for a view or a rollback.
#pragma once

#include <cstdint>
#include <string>

#include "server/client/admin_client.h"
#include "server/client/context.h"

namespace mariner::client {

// The repaired blocks of a moment, in a file that goes with this.
class ConsistentMoment {
 public:
  struct Options {
    std::string volume;
    std::uint64_t sequence = 0;
  };

  // Runs ifsck. kNotFound: ifsck, or a file system that it understands; kCorrupt: one that it
  // cannot mend; others as the daemon answers.
  [[nodiscard]] static Result<ConsistentMoment> find(const Context& context,
                                                     const Options& options);
  ~ConsistentMoment();
  ConsistentMoment(ConsistentMoment&& other) noexcept;
  ConsistentMoment& operator=(ConsistentMoment&&) = delete;

  // 0: it is a sound file system as it is.
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  // "12 blocks, so that its file system is sound".
  [[nodiscard]] std::string text() const;
  // Hands them over, if there are any, in parts; the id by which a request names them. Empty: there
  // are none.
  [[nodiscard]] Result<std::string> hand_over(AdminClient& client) const;

 private:
  ConsistentMoment(Options options, std::string folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}
  [[nodiscard]] std::string file() const { return folder_ + "/repairs"; }
  Result<void> look(const Context& context);

  Options options_;
  std::string folder_;  // of its own; empty: moved away
  std::uint64_t blocks_ = 0;
};

}  // namespace mariner::client
