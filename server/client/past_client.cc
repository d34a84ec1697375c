#include "server/client/past_client.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/admin/json.h"
#include "server/admin/query.h"

namespace mariner::client {
namespace {

constexpr std::string_view kOctets = "application/octet-stream";
// Of one request, where there are more: as large as is read of the log at a time.
constexpr std::size_t kPartQuestions = 512;
static_assert(kPartQuestions <= admin::kBlockQuestionsMax);
constexpr std::size_t kSessions = 4;  // so many of them are under way

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

std::size_t parts_of(std::span<const admin::BlockQuestion> questions) {
  return (questions.size() + kPartQuestions - 1) / kPartQuestions;
}

std::span<const admin::BlockQuestion> part_of(std::span<const admin::BlockQuestion> questions,
                                              std::size_t part) {
  const std::size_t from = part * kPartQuestions;
  return questions.subspan(from, std::min(kPartQuestions, questions.size() - from));
}

}  // namespace

PastClient::PastClient(const Options& options) : options_(options) {
  for (std::size_t i = 0; i < kSessions; ++i)
    sessions_.emplace_back(options.socket, options.timeout);
}

Result<PastClient> PastClient::open(const Options& options) {
  PastClient client(options);
  if (const Result<void> opened = client.open_reading(); !opened) return opened.error();
  return client;
}

PastClient::~PastClient() {
  if (past_.id().empty()) return;
  drop_expected();
  // It ends by itself, too.
  (void)sessions_[0].call({"DELETE", "/v1/past/" + past_.id(), ""});
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
  drop_expected();
  return body_of(sessions_[0].call(call, to));
}

Result<std::string> PastClient::body_of(Result<HttpAnswer> answer) {
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

void PastClient::begin_part(std::span<const admin::BlockQuestion> questions, std::size_t part) {
  sessions_[part % kSessions].begin({"POST", "/v1/past/" + past_.id() + "/blocks",
                                     admin::pack_questions(part_of(questions, part)), kOctets});
}

void PastClient::expect(std::vector<admin::BlockQuestion> questions) {
  drop_expected();
  expected_ = std::move(questions);
  expected_parts_ = std::min(parts_of(expected_), kSessions);
  for (std::size_t part = 0; part < expected_parts_; ++part) begin_part(expected_, part);
}

void PastClient::drop_expected() {
  std::vector<std::byte> answer(kPartQuestions * kBlockBytes);
  for (std::size_t part = 0; part < expected_parts_; ++part) {
    const std::size_t bytes = part_of(expected_, part).size() * kBlockBytes;
    (void)sessions_[part % kSessions].finish(std::span(answer).first(bytes));
  }
  expected_.clear();
  expected_parts_ = 0;
}

Result<void> PastClient::read(std::span<const admin::BlockQuestion> questions,
                              std::span<std::byte> to) {
  CHECK(to.size() == questions.size() * kBlockBytes);
  // (Parts that are the same begin and end alike.)
  const bool expected = expected_parts_ > 0 && std::ranges::equal(questions, expected_);
  if (!expected) drop_expected();
  const std::size_t begun = std::exchange(expected_parts_, 0);
  std::size_t done = 0;
  const Result<void> read = read_parts(questions, to, begun, done);
  if (read || read.error().code != ErrorCode::kNotFound) return read;
  if (const Result<void> opened = open_reading(); !opened) return opened.error();
  return read_parts(questions.subspan(done), to.subspan(done * kBlockBytes), 0, done);
}

Result<void> PastClient::read_parts(std::span<const admin::BlockQuestion> questions,
                                    std::span<std::byte> to, std::size_t begun, std::size_t& done) {
  const std::size_t parts = parts_of(questions);
  Result<void> result;
  done = 0;
  for (std::size_t ended = 0; ended < parts; ++ended) {
    for (; result && begun < parts && begun < ended + kSessions; ++begun) {
      begin_part(questions, begun);
    }
    if (ended == begun) break;
    const std::size_t count = part_of(questions, ended).size();
    const auto answer = body_of(sessions_[ended % kSessions].finish(
        to.subspan(ended * kPartQuestions * kBlockBytes, count * kBlockBytes)));
    if (!answer && result) result = answer.error();
    if (result) done += count;
  }
  return result;
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

Result<admin::StoredPart> PastClient::stored(SequenceNumber at, Lbn first) {
  api::PastStoredRequest request;
  request.set_at(at.value);
  request.set_first_block(first.value);
  const auto body = ask({"GET", "", ""}, "/stored?" + admin::to_query(request));
  if (!body) return body.error();
  Result<admin::StoredPart> part = admin::parse_changed(*body);
  if (!part) return part;
  const bool before = !part->ranges.empty() && part->ranges.front().first < first;
  if (before || (part->next.value != 0 && part->next <= first)) {
    return Error{ErrorCode::kProtocol, "the daemon says what is stored where nobody asked"};
  }
  return part;
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
