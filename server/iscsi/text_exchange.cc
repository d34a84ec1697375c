#include "server/iscsi/text_exchange.h"

#include <algorithm>
#include <utility>

namespace mariner::iscsi {

Result<TextExchange::Reply> TextExchange::step(const TextRequest& request,
                                               std::span<const std::byte> data,
                                               SessionParameters& parameters) {
  if (request.ttt == kReservedTag) {
    // A new exchange; what was left of an earlier one is void (11.10.4).
    static_cast<void>(collector_.take());
    unsent_.clear();
    ttt_ = kReservedTag;
  } else if (request.ttt != ttt_) {
    return Error{ErrorCode::kProtocol, "Text Request: target transfer tag of no exchange"};
  }
  if (!unsent_.empty()) {
    if (!data.empty()) return Error{ErrorCode::kProtocol, "Text Request: text amid our answer"};
    return next_part(request, parameters.send_segment_bytes_max);
  }
  const auto collected = collector_.append(data);
  if (!collected) return collected.error();
  if (!request.continues) {
    const auto answered = answer(collector_.take(), parameters);
    if (!answered) return answered.error();
  }
  return next_part(request, parameters.send_segment_bytes_max);
}

Result<void> TextExchange::answer(std::string_view text, SessionParameters& parameters) {
  const auto pairs = parse_text(text);
  if (!pairs) return pairs.error();
  TextWriter answers;
  std::vector<TextPair> others;
  bool asked = false;
  for (const TextPair& pair : *pairs) {
    if (pair.key == "SendTargets") {
      // Once only: many in one request would make a short question a very long answer.
      if (asked) return Error{ErrorCode::kProtocol, "SendTargets is asked twice"};
      asked = true;
      send_targets(pair.value, answers);
    } else {
      others.push_back(pair);
    }
  }
  const auto negotiated =
      negotiate(others, NegotiationPhase::kFullFeature, environment_.limits, parameters, answers);
  if (!negotiated) return negotiated.error();
  unsent_ = answers.take();
  return {};
}

// Appendix C: "All" in discovery sessions only; a name; or nothing, the session's own target.
void TextExchange::send_targets(std::string_view which, TextWriter& answers) const {
  if (which == "All" || which.empty()) {
    if (environment_.discovery != (which == "All")) {
      answers.add("SendTargets", "Reject");
    } else if (environment_.discovery) {
      for (const auto& name : discoverable()) add_target(name, answers);
    } else {
      add_target(environment_.target, answers);
    }
    return;
  }
  // MUST NOT tell of others than its own (appendix C).
  if (!environment_.discovery) {
    if (which == environment_.target) add_target(which, answers);
    return;
  }
  const auto names = discoverable();
  if (std::find(names.begin(), names.end(), which) != names.end()) add_target(which, answers);
}

std::vector<std::string> TextExchange::discoverable() const {
  return environment_.directory.discoverable(environment_.initiator, environment_.account);
}

void TextExchange::add_target(std::string_view name, TextWriter& answers) const {
  answers.add("TargetName", name);
  for (const PortalAddress& portal : environment_.addresses) {
    answers.add("TargetAddress", portal.address + "," + std::to_string(portal.group));
  }
}

TextExchange::Reply TextExchange::next_part(const TextRequest& request, std::uint32_t bytes_max) {
  Reply reply{.header = {.lun = request.lun, .itt = request.itt}, .text = {}};
  reply.text = unsent_.substr(0, bytes_max);
  unsent_.erase(0, reply.text.size());
  reply.header.continues = !unsent_.empty();
  // The initiator goes on with our tag: to fetch the rest, or to send its own.
  reply.header.final = unsent_.empty() && request.final;
  if (!reply.header.final) {
    if (ttt_ == kReservedTag) {
      ttt_ = next_ttt_;
      next_ttt_ = next_ttt_ + 1 == kReservedTag ? 1 : next_ttt_ + 1;
    }
    reply.header.ttt = ttt_;
  } else {
    ttt_ = kReservedTag;
  }
  return reply;
}

}  // namespace mariner::iscsi
