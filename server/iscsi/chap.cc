#include "server/iscsi/chap.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::iscsi {
namespace {

constexpr std::size_t kChallengeBytesMax = 1024;  // RFC 7143 12.1.3
constexpr std::size_t kNameBytesMax = 255;

Error failure(std::string message) { return {ErrorCode::kProtocol, std::move(message)}; }

const EVP_MD* digest_of(ChapAlgorithm algorithm) {
  switch (algorithm) {
    case ChapAlgorithm::kMd5: return EVP_md5();
    case ChapAlgorithm::kSha1: return EVP_sha1();
    case ChapAlgorithm::kSha256: return EVP_sha256();
    case ChapAlgorithm::kSha3_256: return EVP_sha3_256();
  }
  CHECK_MSG(false, "no such algorithm");
}

bool equal(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::optional<ChapAlgorithm> chap_algorithm(std::string_view number) {
  for (const ChapAlgorithm known : {ChapAlgorithm::kMd5, ChapAlgorithm::kSha1,
                                    ChapAlgorithm::kSha256, ChapAlgorithm::kSha3_256}) {
    if (parse_number(number) == static_cast<std::uint64_t>(known)) return known;
  }
  return std::nullopt;
}

std::vector<std::uint8_t> chap_response(ChapAlgorithm algorithm, std::uint8_t identifier,
                                        std::string_view secret,
                                        std::span<const std::uint8_t> challenge) {
  std::vector<std::uint8_t> text{identifier};
  text.insert(text.end(), secret.begin(), secret.end());
  text.insert(text.end(), challenge.begin(), challenge.end());
  std::vector<std::uint8_t> digest(EVP_MAX_MD_SIZE);
  unsigned bytes = 0;
  const int done =
      EVP_Digest(text.data(), text.size(), digest.data(), &bytes, digest_of(algorithm), nullptr);
  OPENSSL_cleanse(text.data(), text.size());
  CHECK_MSG(done == 1, "a digest cannot be computed");
  digest.resize(bytes);
  return digest;
}

ChapAuthenticator::ChapAuthenticator(std::vector<ChapAccount> accounts, Random random)
    : accounts_(std::move(accounts)), random_(std::move(random)) {
  CHECK(!accounts_.empty());
}

void ChapAuthenticator::system_random(std::span<std::uint8_t> bytes) {
  CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

bool ChapAuthenticator::handles(std::string_view key) const {
  return key == "AuthMethod" || key == "CHAP_A" || key == "CHAP_N" || key == "CHAP_R" ||
         key == "CHAP_I" || key == "CHAP_C";
}

Result<ChapAuthenticator::Keys> ChapAuthenticator::keys_of(std::span<const TextPair> pairs) {
  Keys keys;
  const std::pair<std::string_view, std::optional<std::string_view>*> places[] = {
      {"AuthMethod", &keys.method}, {"CHAP_A", &keys.algorithm},  {"CHAP_N", &keys.name},
      {"CHAP_R", &keys.response},   {"CHAP_I", &keys.identifier}, {"CHAP_C", &keys.challenge},
  };
  for (const TextPair& pair : pairs) {
    for (const auto& [key, place] : places) {
      if (pair.key != key) continue;
      if (place->has_value()) return failure(std::string(key) + " is given twice");
      *place = pair.value;
    }
  }
  return keys;
}

Result<void> ChapAuthenticator::step(std::span<const TextPair> pairs, TextWriter& answers) {
  const Result<Keys> keys = keys_of(pairs);
  if (!keys) return keys.error();
  if (!keys->any()) return {};
  if (keys->method) {
    if (state_ != State::kMethod) return failure("AuthMethod: is chosen already");
    if (Result<void> r = choose_method(*keys->method, answers); !r) return r;
    // What follows may come with it.
    if (!keys->algorithm) {
      return keys->name || keys->response ? failure("CHAP_A: not offered, required")
                                          : Result<void>{};
    }
  }
  if (keys->algorithm) {
    if (state_ != State::kAlgorithm) return failure("CHAP_A: not now");
    if (keys->name || keys->response) return failure("CHAP_R: before the challenge");
    return challenge(*keys->algorithm, answers);
  }
  if (state_ != State::kResponse) return failure("CHAP_R: not now");
  return check(*keys, answers);
}

Result<void> ChapAuthenticator::choose_method(std::string_view offered, TextWriter& answers) {
  const auto methods = split_list(offered);
  if (std::ranges::find(methods, "CHAP") == methods.end()) {
    return failure("AuthMethod: offered " + std::string(offered) + ", required CHAP");
  }
  answers.add("AuthMethod", "CHAP");
  state_ = State::kAlgorithm;
  return {};
}

// The first that we know, in the initiator's order (RFC 7143 6.2.1).
Result<void> ChapAuthenticator::challenge(std::string_view offered, TextWriter& answers) {
  std::optional<ChapAlgorithm> chosen;
  for (const std::string_view number : split_list(offered)) {
    chosen = chap_algorithm(number);
    if (chosen) break;
  }
  if (!chosen) {
    return failure("CHAP_A: offered " + std::string(offered) + ", required one of 8,7,6,5");
  }
  algorithm_ = *chosen;
  random_({&identifier_, 1});
  random_(challenge_);
  answers.add("CHAP_A", static_cast<std::uint64_t>(algorithm_));
  answers.add("CHAP_I", std::uint64_t{identifier_});
  answers.add_binary("CHAP_C", challenge_);
  state_ = State::kResponse;
  return {};
}

Result<void> ChapAuthenticator::check(const Keys& keys, TextWriter& answers) {
  if (!keys.name) return failure("CHAP_N: not offered, required");
  if (!keys.response) return failure("CHAP_R: not offered, required");
  if (keys.name->size() > kNameBytesMax) return failure("CHAP_N: too long");
  const auto response = parse_binary(*keys.response, EVP_MAX_MD_SIZE);
  if (!response) return failure("CHAP_R: no binary value");
  const auto account = std::ranges::find(accounts_, *keys.name, &ChapAccount::user);
  // Who is not known takes as long as who is.
  const bool known = account != accounts_.end();
  const ChapAccount& of = known ? *account : accounts_.front();
  const bool right =
      equal(chap_response(algorithm_, identifier_, of.secret, challenge_), *response);
  if (!known) return failure("CHAP_N: there is no user \"" + printable(*keys.name) + "\" here");
  if (!right) return failure("CHAP_R: wrong for the user \"" + of.user + "\"");
  state_ = State::kDone;
  account_ = of.name;
  if (!keys.identifier && !keys.challenge) return {};
  return prove(of, keys, answers);
}

Result<void> ChapAuthenticator::prove(const ChapAccount& account, const Keys& keys,
                                      TextWriter& answers) const {
  if (!keys.identifier || !keys.challenge) {
    return failure("CHAP_I and CHAP_C: one without the other");
  }
  if (account.mutual_user.empty()) {
    return failure(
        "CHAP_C: the target is asked for a proof, but no mutual secret is configured for \"" +
        account.user + "\"");
  }
  const auto identifier = parse_number(*keys.identifier);
  if (!identifier || *identifier > 0xFF) return failure("CHAP_I: expected 0 to 255");
  const auto challenge = parse_binary(*keys.challenge, kChallengeBytesMax);
  if (!challenge || challenge->empty()) {
    return failure("CHAP_C: expected 1 to 1024 bytes, in hexadecimal or base64");
  }
  // A challenge sent back would be answered by who sent it (12.1.3).
  if (equal(*challenge, challenge_)) return failure("CHAP_C: is the target's own challenge");
  answers.add("CHAP_N", account.mutual_user);
  answers.add_binary("CHAP_R", chap_response(algorithm_, static_cast<std::uint8_t>(*identifier),
                                             account.mutual_secret, *challenge));
  return {};
}

}  // namespace mariner::iscsi
