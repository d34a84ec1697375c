// CHAP (RFC 1994, RFC 7143 12.1): the initiator proves that it knows a secret, and, if it asks, so
// does the target.
//
//   > AuthMethod=CHAP,...          < AuthMethod=CHAP
//   > CHAP_A=8,7,6,5               < CHAP_A=8 CHAP_I=... CHAP_C=...
//   > CHAP_N=... CHAP_R=... [CHAP_I=... CHAP_C=...]
//                                  < [CHAP_N=... CHAP_R=...]
//
// Sans I/O. One ChapAuthenticator per login, on the Executor's thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/iscsi/authenticator.h"

namespace mariner::iscsi {

// RFC 7143 12.1.4 and IANA's "CHAP Algorithms", by their numbers.
enum class ChapAlgorithm : std::uint8_t { kMd5 = 5, kSha1 = 6, kSha256 = 7, kSha3_256 = 8 };
[[nodiscard]] std::optional<ChapAlgorithm> chap_algorithm(std::string_view number);

// The response: the digest of identifier, secret and challenge.
[[nodiscard]] std::vector<std::uint8_t> chap_response(ChapAlgorithm algorithm,
                                                      std::uint8_t identifier,
                                                      std::string_view secret,
                                                      std::span<const std::uint8_t> challenge);

// RFC 7143 12.1.3: shorter ones would have to be random and used with IPsec.
inline constexpr std::size_t kChapSecretBytesMin = 12;
inline constexpr std::size_t kChapSecretBytesMax = 255;

// Who may log in, and as whom the target answers.
struct ChapAccount {
  std::string user;
  std::string secret;
  std::string mutual_user;    // empty: the target proves nothing
  std::string mutual_secret;  // another one than `secret`
  std::string name{};         // of the account: different even where users are called the same
};

class ChapAuthenticator final : public Authenticator {
 public:
  // Fills it with bytes that nobody can foretell.
  using Random = std::function<void(std::span<std::uint8_t>)>;
  static void system_random(std::span<std::uint8_t> bytes);

  // One of `accounts`, which are not none, is to log in.
  explicit ChapAuthenticator(std::vector<ChapAccount> accounts, Random random = system_random);

  [[nodiscard]] Result<void> step(std::span<const TextPair> pairs, TextWriter& answers) override;
  [[nodiscard]] bool handles(std::string_view key) const override;
  [[nodiscard]] bool satisfied() const override { return state_ == State::kDone; }
  [[nodiscard]] std::string_view account() const override { return account_; }

 private:
  static constexpr std::size_t kChallengeBytes = 32;
  enum class State : std::uint8_t { kMethod, kAlgorithm, kResponse, kDone };
  struct Keys {
    std::optional<std::string_view> method;
    std::optional<std::string_view> algorithm;
    std::optional<std::string_view> name;
    std::optional<std::string_view> response;
    std::optional<std::string_view> identifier;
    std::optional<std::string_view> challenge;
    [[nodiscard]] bool any() const {
      return method || algorithm || name || response || identifier || challenge;
    }
  };

  [[nodiscard]] static Result<Keys> keys_of(std::span<const TextPair> pairs);
  [[nodiscard]] Result<void> choose_method(std::string_view offered, TextWriter& answers);
  [[nodiscard]] Result<void> challenge(std::string_view offered, TextWriter& answers);
  [[nodiscard]] Result<void> check(const Keys& keys, TextWriter& answers);
  [[nodiscard]] Result<void> prove(const ChapAccount& account, const Keys& keys,
                                   TextWriter& answers) const;

  const std::vector<ChapAccount> accounts_;
  const Random random_;
  State state_ = State::kMethod;
  std::string account_;
  ChapAlgorithm algorithm_ = ChapAlgorithm::kMd5;
  std::uint8_t identifier_ = 0;
  std::array<std::uint8_t, kChallengeBytes> challenge_{};
};

}  // namespace mariner::iscsi
