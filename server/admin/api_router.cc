#include "server/admin/api_router.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <ranges>
#include <span>
#include <vector>

#include "server/admin/files_route.h"
#include "server/admin/group_routes.h"
#include "server/admin/past_routes.h"
#include "server/admin/route.h"

namespace mariner::admin {
namespace {

using web::HttpMethod;
using web::HttpReply;
using web::HttpRequest;

void get_status(Call& call) {
  call.control.status(answer<api::StatusAnswer>(std::move(call.reply)));
}
void get_doctor(Call& call) {
  call.control.doctor(answer<api::DoctorAnswer>(std::move(call.reply)));
}
void get_volumes(Call& call) {
  call.control.volume_list(answer<api::VolumeList>(std::move(call.reply)));
}
void get_views(Call& call) { call.control.view_list(answer<api::ViewList>(std::move(call.reply))); }
void get_sessions(Call& call) {
  call.control.session_list(answer<api::SessionList>(std::move(call.reply)));
}

void post_volume(Call& call) {
  const auto request = read<api::CreateVolumeRequest>(call);
  if (request) call.control.volume_create(*request, answer<api::Volume>(std::move(call.reply)));
}

void get_volume(Call& call) {
  auto request = read<api::VolumeRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.volume_show(*request, answer<api::Volume>(std::move(call.reply)));
}

void delete_volume(Call& call) {
  auto request = read<api::VolumeRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.volume_delete(*request, answer<api::Volume>(std::move(call.reply)));
}

void post_resize(Call& call) {
  auto request = read<api::ResizeRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.volume_resize(*request, answer<api::Volume>(std::move(call.reply)));
}

void post_retain(Call& call) {
  auto request = read<api::RetainRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.volume_retain(*request, answer<api::Volume>(std::move(call.reply)));
}

void post_compact(Call& call) {
  if (!read<api::CompactRequest>(call)) return;
  call.control.log_compact(answer<api::CompactAnswer>(std::move(call.reply)));
}

void post_config_compare(Call& call) {
  const auto request = read<api::ConfigCompareRequest>(call);
  if (request)
    call.control.config_compare(*request, answer<api::ConfigChanges>(std::move(call.reply)));
}

void post_config_reload(Call& call) {
  if (!read<api::ConfigReloadRequest>(call)) return;
  call.control.config_reload(answer<api::ConfigChanges>(std::move(call.reply)));
}

void post_prune(Call& call) {
  auto request = read<api::PruneRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.history_prune(*request, answer<api::PruneAnswer>(std::move(call.reply)));
}

// Progress and the answer share the reply. Progress that comes after the answer is not sent.
class Stream {
 public:
  explicit Stream(HttpReply reply)
      : reply_(std::make_shared<std::optional<HttpReply>>(std::move(reply))) {}

  [[nodiscard]] UniqueFunction<void(std::uint64_t, std::uint64_t)> progress() const {
    return [reply = reply_](std::uint64_t done, std::uint64_t all) {
      if (*reply)
        (*reply)->progress(
            fmt::format("{{\"schema\":{},\"done_bytes\":\"{}\",\"total_bytes\":\"{}\"}}\n", kSchema,
                        done, all));
    };
  }
  template <typename T>
  [[nodiscard]] Answer<T> last() const {
    return [reply = reply_](Result<T> result) {
      answer<T>(std::move(**reply))(std::move(result));
      reply->reset();
    };
  }

 private:
  std::shared_ptr<std::optional<HttpReply>> reply_;
};

void post_import(Call& call) {
  auto request = read<api::ImportRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  const Stream stream(std::move(call.reply));
  call.control.volume_import(*request, stream.progress(), stream.last<api::Volume>());
}

void post_clone(Call& call) {
  auto request = read<api::CloneRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  const Stream stream(std::move(call.reply));
  call.control.volume_clone(*request, stream.progress(), stream.last<api::Clone>());
}

void get_history(Call& call) {
  auto request = read<api::HistoryRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.history(*request, answer<api::History>(std::move(call.reply)));
}

void post_rollback(Call& call) {
  auto request = read<api::RollbackRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.rollback(*request, answer<api::RollbackAnswer>(std::move(call.reply)));
}

void get_marks(Call& call) {
  auto request = read<api::MarkRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.mark_list(*request, answer<api::MarkList>(std::move(call.reply)));
}

void post_mark(Call& call) {
  auto request = read<api::MarkRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.mark_add(*request, answer<api::Mark>(std::move(call.reply)));
}

void delete_mark(Call& call) {
  auto request = read<api::MarkRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  request->set_name(call.names[1]);
  call.control.mark_remove(*request, answer<api::Mark>(std::move(call.reply)));
}

void get_verdicts(Call& call) {
  auto request = read<api::VerdictsRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.verdict_list(*request, answer<api::VerdictList>(std::move(call.reply)));
}

void put_verdicts(Call& call) {
  auto request = read<api::SaveVerdictsRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.verdicts_save(*request, answer<api::VerdictList>(std::move(call.reply)));
}

void post_view(Call& call) {
  const auto request = read<api::ExposeRequest>(call);
  if (request) call.control.view_expose(*request, answer<api::View>(std::move(call.reply)));
}

void delete_view(Call& call) {
  auto request = read<api::UnexposeRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.view_unexpose(*request, answer<api::View>(std::move(call.reply)));
}

void get_access(Call& call) {
  auto request = read<api::AccessRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.access_show(*request, answer<api::Access>(std::move(call.reply)));
}

void post_acl(Call& call) {
  auto request = read<api::AclRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.acl_add(*request, answer<api::Access>(std::move(call.reply)));
}

void delete_acl(Call& call) {
  auto request = read<api::AclRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  request->set_initiator(call.names[1]);
  call.control.acl_remove(*request, answer<api::Access>(std::move(call.reply)));
}

void post_auth(Call& call) {
  auto request = read<api::AuthRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.auth_set(*request, answer<api::Access>(std::move(call.reply)));
}

void post_redirect(Call& call) {
  auto request = read<api::RedirectRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.redirect_set(*request, answer<api::Access>(std::move(call.reply)));
}

void delete_session(Call& call) {
  auto request = read<api::SessionRequest>(call);
  if (!request) return;
  std::uint64_t id = 0;
  const auto& text = call.names[0];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(call.reply, {ErrorCode::kInvalidArgument, "a session's id is a whole number"});
  }
  request->set_id(id);
  call.control.session_kick(*request, answer<api::Session>(std::move(call.reply)));
}

void post_invitation(Call& call) {
  auto request = read<api::InviteRequest>(call);
  if (!request) return;
  request->set_node(call.names[0]);
  call.control.node_invite(*request, answer<api::Invitation>(std::move(call.reply)));
}

void post_promotion(Call& call) {
  auto request = read<api::PromoteRequest>(call);
  if (!request) return;
  request->set_volume(call.names[0]);
  call.control.node_promote(*request, answer<api::Promotion>(std::move(call.reply)));
}

void get_cluster(Call& call) {
  call.control.cluster_status(answer<api::ClusterStatus>(std::move(call.reply)));
}

void post_files(Call& call) {
  const auto request = read<api::FilesRequest>(call);
  if (request) answer_files(*request, std::move(call.reply), call.control.files());
}

constexpr std::array kRoutes{
    Route{HttpMethod::kGet, "/v1/status", get_status},
    Route{HttpMethod::kPost, "/v1/log/compact", post_compact},
    Route{HttpMethod::kGet, "/v1/doctor", get_doctor},
    Route{HttpMethod::kPost, "/v1/config/compare", post_config_compare},
    Route{HttpMethod::kPost, "/v1/config/reload", post_config_reload},
    Route{HttpMethod::kGet, "/v1/volumes", get_volumes},
    Route{HttpMethod::kPost, "/v1/volumes", post_volume},
    Route{HttpMethod::kGet, "/v1/volumes/*", get_volume},
    Route{HttpMethod::kDelete, "/v1/volumes/*", delete_volume},
    Route{HttpMethod::kPost, "/v1/volumes/*/resize", post_resize},
    Route{HttpMethod::kPost, "/v1/volumes/*/retain", post_retain},
    Route{HttpMethod::kPost, "/v1/volumes/*/prune", post_prune},
    Route{HttpMethod::kPost, "/v1/volumes/*/import", post_import},
    Route{HttpMethod::kPost, "/v1/volumes/*/clone", post_clone},
    Route{HttpMethod::kGet, "/v1/volumes/*/history", get_history, true},
    Route{HttpMethod::kPost, "/v1/volumes/*/rollback", post_rollback},
    Route{HttpMethod::kGet, "/v1/volumes/*/marks", get_marks},
    Route{HttpMethod::kPost, "/v1/volumes/*/marks", post_mark},
    Route{HttpMethod::kDelete, "/v1/volumes/*/marks/*", delete_mark},
    Route{HttpMethod::kGet, "/v1/volumes/*/verdicts", get_verdicts},
    Route{HttpMethod::kPut, "/v1/volumes/*/verdicts", put_verdicts},
    Route{HttpMethod::kGet, "/v1/volumes/*/access", get_access},
    Route{HttpMethod::kPost, "/v1/volumes/*/access/acl", post_acl},
    Route{HttpMethod::kDelete, "/v1/volumes/*/access/acl/*", delete_acl},
    Route{HttpMethod::kPost, "/v1/volumes/*/access/auth", post_auth},
    Route{HttpMethod::kPost, "/v1/volumes/*/access/redirect", post_redirect},
    Route{HttpMethod::kGet, "/v1/views", get_views},
    Route{HttpMethod::kPost, "/v1/views", post_view},
    Route{HttpMethod::kDelete, "/v1/views/*", delete_view},
    Route{HttpMethod::kGet, "/v1/sessions", get_sessions},
    Route{HttpMethod::kDelete, "/v1/sessions/*", delete_session},
    Route{HttpMethod::kPost, "/v1/nodes/*/invitation", post_invitation},
    Route{HttpMethod::kPost, "/v1/volumes/*/promotion", post_promotion},
    Route{HttpMethod::kGet, "/v1/cluster", get_cluster},
    Route{HttpMethod::kPost, "/v1/files", post_files},
};

std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const auto part = path.substr(0, path.find('/'));
    parts.push_back(part);
    path.remove_prefix(part.size());
  }
  return parts;
}

// The names at the pattern's stars, still encoded. Nothing if the path is another one.
std::optional<std::vector<std::string_view>> match(std::string_view pattern,
                                                   std::string_view path) {
  const auto expected = segments(pattern);
  const auto found = segments(path);
  if (expected.size() != found.size()) return std::nullopt;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == "*" && !found[i].empty()) {
      names.push_back(found[i]);
    } else if (expected[i] != found[i]) {
      return std::nullopt;
    }
  }
  return names;
}

std::string_view method_name(HttpMethod method) {
  switch (method) {
    case HttpMethod::kGet: return "GET";
    case HttpMethod::kHead: return "HEAD";
    case HttpMethod::kPost: return "POST";
    case HttpMethod::kPut: return "PUT";
    case HttpMethod::kDelete: return "DELETE";
    case HttpMethod::kOther: break;
  }
  return "";
}

}  // namespace

void route(HttpRequest request, HttpReply reply, Control& control) {
  std::string allow;
  const auto candidates = {std::span<const Route>(kRoutes), group_routes(), past_routes()};
  for (const Route& candidate : candidates | std::views::join) {
    const auto encoded =
        request.path.starts_with('/') ? match(candidate.pattern, request.path) : std::nullopt;
    if (!encoded) continue;
    if (candidate.method != request.method) {
      allow += fmt::format("{}{}", allow.empty() ? "" : ", ", method_name(candidate.method));
      continue;
    }
    if (!candidate.for_queries && control.files().runs(request.peer)) {
      return fail(reply, {ErrorCode::kReadOnly, "who answers questions may only read the past"});
    }
    std::vector<std::string> names;
    for (const auto part : *encoded) {
      auto name = percent_decoded(part);
      if (!name) return fail(reply, name.error());
      names.push_back(*std::move(name));
    }
    Call call{std::move(request), std::move(names), std::move(reply), control};
    return candidate.handle(call);
  }
  if (allow.empty())
    return fail(reply, {ErrorCode::kNotFound, "there is no such path in the admin API"});
  const Error error{ErrorCode::kInvalidArgument, "this path allows " + allow};
  reply.send({405, web::kJson, to_json(error) + "\n", allow});
}

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return 400;
    case ErrorCode::kNotFound: return 404;
    case ErrorCode::kAlreadyExists: return 409;
    case ErrorCode::kOutsideWindow: return 422;
    case ErrorCode::kBusy: return 423;
    case ErrorCode::kReadOnly: return 403;
    case ErrorCode::kNoSpace: return 507;
    case ErrorCode::kLimit: return 429;
    case ErrorCode::kAborted:
    case ErrorCode::kStaleEpoch:
    case ErrorCode::kUnavailable: return 503;
    case ErrorCode::kCorrupt:
    case ErrorCode::kIo:
    case ErrorCode::kProtocol:
    case ErrorCode::kMiscompare: return 500;
  }
  return 500;
}

}  // namespace mariner::admin
