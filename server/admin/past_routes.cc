#include "server/admin/past_routes.h"

#include <array>
#include <string>
#include <utility>

namespace mariner::admin {
namespace {

using web::HttpMethod;

void post_past(Call& call) {
  auto request = read<api::OpenPastRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.past().open(*request, answer<api::Past>(std::move(call.reply)));
}

void get_past(Call& call) {
  auto request = read<api::PastRequest>(call);
  if (!request) return;
  request->set_id(call.names[0]);
  call.control.past().show(*request, answer<api::Past>(std::move(call.reply)));
}

void delete_past(Call& call) {
  auto request = read<api::PastRequest>(call);
  if (!request) return;
  request->set_id(call.names[0]);
  call.control.past().close(*request, answer<api::Past>(std::move(call.reply)));
}

void get_past_moment(Call& call) {
  auto request = read<api::PastMomentRequest>(call);
  if (!request) return;
  request->set_id(call.names[0]);
  call.control.past().moment(*request, answer<api::Moment>(std::move(call.reply)));
}

// A completion that sends what `pack` makes of the answer.
template <typename T>
Answer<T> answer_bytes(web::HttpReply reply, std::string (*pack)(const T&)) {
  return [reply = std::move(reply), pack](Result<T> result) mutable {
    if (!result) return fail(reply, result.error());
    reply.send({200, web::kOctets, pack(*result), {}});
  };
}

void get_past_changed(Call& call) {
  auto request = read<api::PastChangedRequest>(call);
  if (!request) return;
  request->set_id(call.names[0]);
  call.control.past().changed(*request, answer_bytes(std::move(call.reply), pack_changed));
}

void get_past_stored(Call& call) {
  auto request = read<api::PastStoredRequest>(call);
  if (!request) return;
  request->set_id(call.names[0]);
  call.control.past().stored(*request, answer_bytes(std::move(call.reply), pack_changed));
}

// False: a request whose body is bytes has a parameter that it does not know.
bool has_bytes_only(Call& call) {
  api::PastRequest request;
  const auto valid = from_query(call.request.query, request);
  if (!valid) fail(call.reply, valid.error());
  return valid.has_value();
}

void post_past_versions(Call& call) {
  if (!has_bytes_only(call)) return;
  auto request = parse_versions_request(call.request.body);
  if (!request) return fail(call.reply, request.error());
  call.control.past().versions(call.names[0], *std::move(request),
                               answer_bytes(std::move(call.reply), pack_versions));
}

void post_past_blocks(Call& call) {
  if (!has_bytes_only(call)) return;
  auto questions = parse_questions(call.request.body);
  if (!questions) return fail(call.reply, questions.error());
  call.control.past().blocks(
      call.names[0], *std::move(questions),
      [reply = std::move(call.reply)](Result<PastSource::Blocks> blocks) mutable {
        if (!blocks) return fail(reply, blocks.error());
        reply.send(
            {200, web::kOctets, "", "", std::move(blocks->slices), std::move(blocks->budget)});
      });
}

void post_repairs(Call& call) {
  auto request = read<api::RepairsRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.repairs().open(*request, answer<api::Repairs>(std::move(call.reply)));
}

void post_repairs_blocks(Call& call) {
  if (!has_bytes_only(call)) return;
  const auto blocks = parse_repairs(call.request.body);
  if (!blocks) return fail(call.reply, blocks.error());
  call.control.repairs().add(call.names[0], *blocks, answer<api::Repairs>(std::move(call.reply)));
}

void delete_repairs(Call& call) {
  if (!has_bytes_only(call)) return;
  call.control.repairs().drop(call.names[0], answer<api::Repairs>(std::move(call.reply)));
}

constexpr std::array kPastRoutes{
    Route{HttpMethod::kPost, "/v1/volumes/*/repairs", post_repairs},
    Route{HttpMethod::kPost, "/v1/repairs/*/blocks", post_repairs_blocks},
    Route{HttpMethod::kDelete, "/v1/repairs/*", delete_repairs},
    Route{HttpMethod::kPost, "/v1/volumes/*/past", post_past, true},
    Route{HttpMethod::kGet, "/v1/past/*", get_past, true},
    Route{HttpMethod::kDelete, "/v1/past/*", delete_past, true},
    Route{HttpMethod::kGet, "/v1/past/*/moment", get_past_moment, true},
    Route{HttpMethod::kPost, "/v1/past/*/blocks", post_past_blocks, true},
    Route{HttpMethod::kGet, "/v1/past/*/changed", get_past_changed, true},
    Route{HttpMethod::kGet, "/v1/past/*/stored", get_past_stored, true},
    Route{HttpMethod::kPost, "/v1/past/*/versions", post_past_versions, true},
};

}  // namespace

std::span<const Route> past_routes() { return kPastRoutes; }

}  // namespace mariner::admin
