#include "server/client/past_client.h"

#include <algorithm>

#include "proto/check.h"
#include "server/admin/json.h"
#include "server/admin/query.h"

namespace mariner::client {
namespace {

constexpr std::string_view kOctets = "application/octet-stream";

template <typename Message>
Result<Message> message_of(const Result<std::string>& body) {
  if (!body) return body.error();
  Message message;
  const Result<void> parsed = admin::from_answer_json(*body, message);
  if (parsed) return message;
  return Error{ErrorCode::kProtocol,
               "the daemon's answer is not understood: " + parsed.error().message};
}

// What goes on where the last one ends is part of it.
void append(const BlockRange& range, std::vector<BlockRange>& to) {
  if (!to.empty() && range.first <= to.back().end()) {
    to.back() = BlockRange::between(to.back().first, std::max(to.back().end(), range.end()));
  } else {
    to.push_back(range);
  }
}

}  // namespace

Result<PastClient> PastClient::open(const Options& options) {
  PastClient client(options);
  if (const Result<void> opened = client.open_reading(); !opened) return opened.error();
  return client;
}

PastClient::~PastClient() {
  if (past_.id().empty()) return;
  // It ends by itself, too.
  (void)session_.call({"DELETE", "/v1/past/" + past_.id(), ""});
}

Result<void> PastClient::open_reading() {
  Result<void> opened = open_from();
  if (opened || !options_.moves_on || opened.error().code != ErrorCode::kOutsideWindow) {
    return opened;
  }
  options_.from.Clear();
  return open_from();
}

Result<void> PastClient::open_from() {
  api::OpenPastRequest request;
  *request.mutable_from() = options_.from;
  const auto past = message_of<api::Past>(
      ask_once({"POST", "/v1/volumes/" + admin::percent_encoded(options_.volume) + "/past",
                admin::to_request_json(request)},
               {}));
  if (!past) return past.error();
  if (past->id().empty()) {
    return Error{ErrorCode::kProtocol, "the daemon has opened a reading without an id"};
  }
  if (past_.volume_id() != 0 && past->volume_id() != past_.volume_id()) {
    return Error{ErrorCode::kNotFound, options_.volume + " is another volume by now"};
  }
  past_ = *past;
  options_.from.set_sequence(past_.from().sequence());
  return {};
}

Result<std::string> PastClient::ask_once(const HttpCall& call, std::span<std::byte> to) {
  Result<HttpAnswer> answer = session_.call(call, to);
  if (!answer) return answer.error();
  if (answer->status != 200) return admin::error_from_json(answer->body);
  return std::move(answer->body);
}

Result<std::string> PastClient::ask(HttpCall call, const std::string& what,
                                    std::span<std::byte> to) {
  call.target = "/v1/past/" + past_.id() + what;
  Result<std::string> answer = ask_once(call, to);
  if (answer || answer.error().code != ErrorCode::kNotFound) return answer;
  if (const Result<void> opened = open_reading(); !opened) return opened.error();
  call.target = "/v1/past/" + past_.id() + what;
  return ask_once(call, to);
}

Result<void> PastClient::look() {
  const auto past = message_of<api::Past>(ask({"GET", "", ""}, ""));
  if (!past) return past.error();
  past_ = *past;
  return {};
}

Result<api::Moment> PastClient::moment(const api::MomentSpec& at) {
  api::PastMomentRequest request;
  *request.mutable_at() = at;
  return message_of<api::Moment>(ask({"GET", "", ""}, "/moment?" + admin::to_query(request)));
}

Result<void> PastClient::read(std::span<const admin::BlockQuestion> questions,
                              std::span<std::byte> to) {
  CHECK(to.size() == questions.size() * kBlockBytes);
  while (!questions.empty()) {
    const auto some = questions.first(std::min(questions.size(), admin::kBlockQuestionsMax));
    const auto answer = ask({"POST", "", admin::pack_questions(some), kOctets}, "/blocks",
                            to.first(some.size() * kBlockBytes));
    if (!answer) return answer.error();
    questions = questions.subspan(some.size());
    to = to.subspan(some.size() * kBlockBytes);
  }
  return {};
}

Result<std::vector<BlockRange>> PastClient::changed(SequenceNumber from, SequenceNumber to) {
  api::PastChangedRequest request;
  request.set_from(from.value);
  request.set_to(to.value);
  std::vector<BlockRange> out;
  for (Lbn next;;) {
    request.set_first_block(next.value);
    const auto body = ask({"GET", "", ""}, "/changed?" + admin::to_query(request));
    if (!body) return body.error();
    const Result<admin::ChangedPart> part = admin::parse_changed(*body);
    if (!part) return part.error();
    for (const BlockRange& each : part->ranges) append(each, out);
    if (part->next.value == 0) return out;
    if (part->next <= next) {
      return Error{ErrorCode::kProtocol, "the daemon says again and again what changed"};
    }
    next = part->next;
  }
}

Result<std::vector<admin::BlockVersion>> PastClient::versions(std::span<const Lbn> blocks,
                                                              SequenceNumber from,
                                                              SequenceNumber to) {
  std::vector<admin::BlockVersion> out;
  std::optional<SequenceNumber> after;  // of the first block that is left; nothing: `from`
  while (!blocks.empty()) {
    const auto some = blocks.first(std::min(blocks.size(), admin::kVersionBlocksMax));
    admin::VersionsRequest request{to, {}};
    for (const Lbn block : some) request.blocks.push_back({block, from});
    if (after) request.blocks.front().after = *after;
    const auto body =
        ask({"POST", "", admin::pack_versions_request(request), kOctets}, "/versions");
    if (!body) return body.error();
    const Result<admin::VersionsPart> part = admin::parse_versions(*body);
    if (!part) return part.error();
    out.insert(out.end(), part->list.begin(), part->list.end());
    if (!part->more) {
      blocks = blocks.subspan(some.size());
      after.reset();
      continue;
    }
    const admin::BlockVersion& last = part->list.back();
    const auto left = std::ranges::find(some, last.block);
    if (left == some.end() || last.sequence <= request.blocks[left - some.begin()].after) {
      return Error{ErrorCode::kProtocol, "the daemon lists what was not asked for"};
    }
    blocks = blocks.subspan(left - some.begin());
    after = last.sequence;
  }
  return out;
}

}  // namespace mariner::client
