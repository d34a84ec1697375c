#include "server/scsi/rod_tokens.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::scsi {

RodTokens::Use::Use(RodTokens& tokens, std::uint64_t identifier, std::shared_ptr<const Rod> rod)
    : tokens_(tokens.self_), identifier_(identifier), rod_(std::move(rod)) {}

RodTokens::Use::~Use() {
  if (const auto tokens = tokens_.lock()) (*tokens)->used(identifier_, ending_);
}

std::variant<Sense, RodTokenBytes> RodTokens::create(Rod rod, const Identity& unit,
                                                     std::uint32_t block_bytes,
                                                     std::chrono::seconds inactivity) {
  CHECK(inactivity.count() > 0 && inactivity <= kInactivityMax);
  expire();
  make_room_of(rod.unit);
  if (tokens_.size() >= kMax) return illegal_request(asc::kInsufficientResourcesForRodToken);
  Token token;
  token.bytes = make_rod_token(++last_, unit, block_bytes, rod.bytes, random_);
  token.rod = std::make_shared<const Rod>(std::move(rod));
  token.inactivity = inactivity;
  token.created = token.used = clock_();
  RodTokenBytes bytes = token.bytes;
  tokens_.emplace(last_, std::move(token));
  return bytes;
}

void RodTokens::make_room_of(const CopyTarget& unit) {
  auto oldest = tokens_.end();
  std::size_t count = 0;
  for (auto it = tokens_.begin(); it != tokens_.end(); ++it) {
    if (it->second.rod->unit.designator != unit.designator) continue;
    ++count;
    if (oldest == tokens_.end() || it->second.used < oldest->second.used) oldest = it;
  }
  if (count >= kOfUnitMax) end(oldest, asc::kTokenCancelled);
}

std::variant<Sense, std::shared_ptr<RodTokens::Use>> RodTokens::use(
    std::span<const std::uint8_t, 512> token) {
  expire();
  if (!has_rod_length(token)) return illegal_request(asc::kInvalidTokenLength);
  if (!well_formed_rod(token)) return illegal_request(asc::kTokenCorrupt);
  if (rod_type_of(token) != RodType::kPointInTimeDefault) {
    return illegal_request(asc::kUnsupportedTokenType);
  }
  const auto found = tokens_.find(rod_identifier_of(token));
  if (found != tokens_.end() && same_rod(found->second.bytes, token)) {
    ++found->second.uses;
    return std::make_shared<Use>(*this, found->first, found->second.rod);
  }
  const auto past = std::ranges::find_if(past_, [&](const Past& p) {
    return rod_identifier_of(p.bytes) == rod_identifier_of(token) && same_rod(p.bytes, token);
  });
  return illegal_request(past != past_.end() ? past->how : asc::kTokenUnknown);
}

void RodTokens::used(std::uint64_t identifier, AdditionalSense ending) {
  const auto found = tokens_.find(identifier);
  if (found == tokens_.end()) return;  // it was cancelled meanwhile
  CHECK(found->second.uses > 0);
  --found->second.uses;
  found->second.used = clock_();
  if (ending != asc::kNone) end(found, ending);
}

void RodTokens::end(std::map<std::uint64_t, Token>::iterator token, AdditionalSense how) {
  if (past_.size() >= kEndedMax) past_.pop_front();
  past_.push_back({token->second.bytes, how});
  tokens_.erase(token);
}

void RodTokens::expire() {
  const auto now = clock_();
  for (auto it = tokens_.begin(); it != tokens_.end();) {
    const Token& token = it->second;
    const auto next = std::next(it);
    const bool over = now - token.used >= token.inactivity || now - token.created >= kLifetimeMax;
    if (token.uses == 0 && over) end(it, asc::kTokenExpired);
    it = next;
  }
}

// SPC-4 6.31.
std::vector<std::uint8_t> RodTokens::report(const std::vector<std::uint8_t>& naa) const {
  std::vector<std::uint8_t> data(8);
  for (const auto& [identifier, token] : tokens_) {
    if (token.rod->unit.designator != naa) continue;
    data.insert(data.end(), token.bytes.begin(), token.bytes.begin() + kRodManagementBytes);
  }
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
  return data;
}

}  // namespace mariner::scsi
