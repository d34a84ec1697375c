#include "server/peer/invitation_book.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>

#include "proto/check.h"
#include "server/peer/invitation.h"
#include "server/peer/openssl.h"

namespace mariner::peer {

InvitationBook::Hash InvitationBook::hash_of(std::string_view secret) {
  Hash hash{};
  CHECK(EVP_Digest(secret.data(), secret.size(), hash.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return hash;
}

InvitationBook::InvitationBook(const Options& options)
    : options_(options), throttle_(options.throttle) {
  CHECK(options.open_max > 0 && options.open_max < kRememberedMax);
}

std::size_t InvitationBook::open(std::chrono::nanoseconds now) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [now](const Entry& entry) { return entry.open(now); }));
}

Result<std::string> InvitationBook::invite(const std::string& node, std::chrono::nanoseconds now) {
  for (Entry& entry : entries_) {
    if (entry.node == node && entry.open(now)) entry.state = State::kReplaced;
  }
  if (open(now) >= options_.open_max) {
    return Error{ErrorCode::kLimit,
                 fmt::format("{} invitations wait for their nodes, and no more are kept; each ends "
                             "after an hour",
                             open(now))};
  }
  std::string secret(kSecretBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()),
                 static_cast<int>(secret.size())) != 1) {
    return openssl_error(ErrorCode::kIo, "cannot make a secret");
  }
  if (entries_.size() >= kRememberedMax) {
    const auto closed =
        std::ranges::find_if(entries_, [now](const Entry& entry) { return !entry.open(now); });
    CHECK(closed != entries_.end());  // fewer are open than are remembered
    entries_.erase(closed);
  }
  entries_.push_back({hash_of(secret), node, now + options_.life, State::kWaits});
  return secret;
}

Error InvitationBook::wrong(const Entry* entry) const {
  std::string why = "there is no such invitation, or the node that made it was restarted since";
  if (entry != nullptr) {
    switch (entry->state) {
      case State::kUsed:
        why = fmt::format(
            "the invitation of {} was used already; if it was not this node that used it, somebody "
            "else has joined the cluster under this name",
            entry->node);
        break;
      case State::kReplaced:
        why =
            fmt::format("{} was invited again, and only the last invitation is good", entry->node);
        break;
      case State::kWaits:
        why = fmt::format("the invitation of {} has ended: they are good for an hour", entry->node);
        break;
    }
  }
  return {ErrorCode::kNotFound, fmt::format("{}; make another with \"mariner node invite\"", why)};
}

Result<std::string> InvitationBook::redeem(std::string_view secret, std::string_view address,
                                           std::chrono::nanoseconds now) {
  if (const auto wait = throttle_.wait(address, now); wait.count() > 0) {
    return Error{ErrorCode::kBusy,
                 fmt::format("too many wrong secrets came from this address; try again in {} s",
                             std::chrono::ceil<std::chrono::seconds>(wait).count())};
  }
  const Hash hash = hash_of(secret);
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0;
  });
  if (found == entries_.end() || !found->open(now)) {
    throttle_.failed(address, now);
    return wrong(found == entries_.end() ? nullptr : &*found);
  }
  found->state = State::kUsed;
  return found->node;
}

}  // namespace mariner::peer
