#include "server/client/admin_client.h"

#include <charconv>

#include "server/admin/json.h"
#include "server/admin/query.h"
#include "server/client/http_client.h"

namespace mariner::client {
namespace {

using admin::percent_encoded;

// Calls one function of the API at one socket.
struct Api {
  const std::string& socket;
  std::chrono::seconds timeout;
  std::function<void(std::string_view)> on_line = {};

  template <typename Answer>
  [[nodiscard]] Result<Answer> send(const HttpCall& call) const {
    const auto answer = http_call(socket, call, timeout, on_line);
    if (!answer) return answer.error();
    // A stream that ends in an error has begun with status 200.
    const bool failed =
        answer->status != 200 || answer->body.find("\"error\":{") != std::string::npos;
    if (failed) {
      auto error = admin::error_from_json(answer->body);
      if (answer->status != 200 || error.code != ErrorCode::kProtocol) return error;
    }
    Answer message;
    const auto parsed = admin::from_answer_json(answer->body, message);
    if (!parsed)
      return Error{ErrorCode::kProtocol,
                   "the daemon's answer is not understood: " + parsed.error().message};
    return message;
  }

  template <typename Answer>
  [[nodiscard]] Result<Answer> get(const std::string& path) const {
    return send<Answer>({"GET", path, ""});
  }
  template <typename Answer, typename Request>
  [[nodiscard]] Result<Answer> get(const std::string& path, const Request& request) const {
    return send<Answer>({"GET", path + "?" + admin::to_query(request), ""});
  }
  template <typename Answer, typename Request>
  [[nodiscard]] Result<Answer> remove(const std::string& path, const Request& request) const {
    return send<Answer>({"DELETE", path + "?" + admin::to_query(request), ""});
  }
  template <typename Answer, typename Request>
  [[nodiscard]] Result<Answer> post(const std::string& path, const Request& request) const {
    return send<Answer>({"POST", path, admin::to_request_json(request)});
  }
  template <typename Answer, typename Request>
  [[nodiscard]] Result<Answer> put(const std::string& path, const Request& request) const {
    return send<Answer>({"PUT", path, admin::to_request_json(request)});
  }
};

std::string volume_path(const std::string& name) { return "/v1/volumes/" + percent_encoded(name); }

std::string group_path(const std::string& name) { return "/v1/groups/" + percent_encoded(name); }

// The number behind `"key":"` in a line of progress; 0 if there is none.
std::uint64_t number_of(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  std::uint64_t number = 0;
  if (at != std::string_view::npos)
    std::from_chars(line.data() + at + key.size(), line.data() + line.size(), number);
  return number;
}

// Takes lines of progress, and tells `progress`, which stays valid, how far it is.
auto on_line_of(const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  return [&progress](std::string_view line) {
    if (progress)
      progress(number_of(line, "\"done_bytes\":\""), number_of(line, "\"total_bytes\":\""));
  };
}

}  // namespace

Result<api::StatusAnswer> AdminClient::status() {
  return Api{socket_, timeout_}.get<api::StatusAnswer>("/v1/status");
}

Result<api::CompactAnswer> AdminClient::log_compact() {
  return Api{socket_, timeout_}.post<api::CompactAnswer>("/v1/log/compact", api::CompactRequest{});
}

Result<api::VolumeList> AdminClient::volume_list() {
  return Api{socket_, timeout_}.get<api::VolumeList>("/v1/volumes");
}

Result<api::Volume> AdminClient::volume_show(const api::VolumeRequest& request) {
  return Api{socket_, timeout_}.get<api::Volume>(volume_path(request.name()));
}

Result<api::Volume> AdminClient::volume_create(const api::CreateVolumeRequest& request) {
  return Api{socket_, timeout_}.post<api::Volume>("/v1/volumes", request);
}

Result<api::Volume> AdminClient::volume_retain(const api::RetainRequest& request) {
  return Api{socket_, timeout_}.post<api::Volume>(volume_path(request.name()) + "/retain", request);
}

Result<api::PruneAnswer> AdminClient::history_prune(const api::PruneRequest& request) {
  return Api{socket_, timeout_}.post<api::PruneAnswer>(volume_path(request.name()) + "/prune",
                                                       request);
}

Result<api::Volume> AdminClient::volume_resize(const api::ResizeRequest& request) {
  return Api{socket_, timeout_}.post<api::Volume>(volume_path(request.name()) + "/resize", request);
}

Result<api::Volume> AdminClient::volume_delete(const api::VolumeRequest& request) {
  return Api{socket_, timeout_}.remove<api::Volume>(volume_path(request.name()), request);
}

Result<api::Volume> AdminClient::volume_import(
    const api::ImportRequest& request,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  return Api{socket_, timeout_, on_line_of(progress)}.post<api::Volume>(
      volume_path(request.name()) + "/import", request);
}

Result<api::Clone> AdminClient::volume_clone(
    const api::CloneRequest& request,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  return Api{socket_, timeout_, on_line_of(progress)}.post<api::Clone>(
      volume_path(request.volume()) + "/clone", request);
}

Result<api::History> AdminClient::history(const api::HistoryRequest& request) {
  return Api{socket_, timeout_}.get<api::History>(volume_path(request.name()) + "/history",
                                                  request);
}

Result<api::Mark> AdminClient::mark_add(const api::MarkRequest& request) {
  return Api{socket_, timeout_}.post<api::Mark>(volume_path(request.volume()) + "/marks", request);
}

Result<api::MarkList> AdminClient::mark_list(const api::MarkRequest& request) {
  return Api{socket_, timeout_}.get<api::MarkList>(volume_path(request.volume()) + "/marks");
}

Result<api::Mark> AdminClient::mark_remove(const api::MarkRequest& request) {
  return Api{socket_, timeout_}.remove<api::Mark>(
      volume_path(request.volume()) + "/marks/" + percent_encoded(request.name()), request);
}

Result<api::VerdictList> AdminClient::verdicts_save(const api::SaveVerdictsRequest& request) {
  return Api{socket_, timeout_}.put<api::VerdictList>(volume_path(request.volume()) + "/verdicts",
                                                      request);
}

Result<api::VerdictList> AdminClient::verdict_list(const api::VerdictsRequest& request) {
  return Api{socket_, timeout_}.get<api::VerdictList>(volume_path(request.volume()) + "/verdicts",
                                                      request);
}

Result<api::View> AdminClient::view_expose(const api::ExposeRequest& request) {
  return Api{socket_, timeout_}.post<api::View>("/v1/views", request);
}

Result<api::ViewList> AdminClient::view_list() {
  return Api{socket_, timeout_}.get<api::ViewList>("/v1/views");
}

Result<api::View> AdminClient::view_unexpose(const api::UnexposeRequest& request) {
  return Api{socket_, timeout_}.remove<api::View>("/v1/views/" + percent_encoded(request.name()),
                                                  request);
}

Result<api::Repairs> AdminClient::repairs_open(const api::RepairsRequest& request) {
  return Api{socket_, timeout_}.post<api::Repairs>(volume_path(request.volume()) + "/repairs",
                                                   request);
}

Result<api::Repairs> AdminClient::repairs_add(const std::string& id, const std::string& records) {
  return Api{socket_, timeout_}.send<api::Repairs>(
      {"POST", "/v1/repairs/" + percent_encoded(id) + "/blocks", records,
       "application/octet-stream"});
}

Result<api::Repairs> AdminClient::repairs_drop(const std::string& id) {
  return Api{socket_, timeout_}.send<api::Repairs>(
      {"DELETE", "/v1/repairs/" + percent_encoded(id), ""});
}

Result<api::RollbackAnswer> AdminClient::rollback(const api::RollbackRequest& request) {
  return Api{socket_, timeout_}.post<api::RollbackAnswer>(
      volume_path(request.volume()) + "/rollback", request);
}

Result<api::GroupList> AdminClient::group_list() {
  return Api{socket_, timeout_}.get<api::GroupList>("/v1/groups");
}

Result<api::Group> AdminClient::group_show(const api::GroupRequest& request) {
  return Api{socket_, timeout_}.get<api::Group>(group_path(request.name()));
}

Result<api::Group> AdminClient::group_create(const api::GroupRequest& request) {
  return Api{socket_, timeout_}.post<api::Group>("/v1/groups", request);
}

Result<api::Group> AdminClient::group_add(const api::GroupRequest& request) {
  return Api{socket_, timeout_}.post<api::Group>(group_path(request.name()) + "/members", request);
}

Result<api::Group> AdminClient::group_remove(const api::GroupRequest& request) {
  const std::string member = request.volumes_size() == 1 ? request.volumes(0) : std::string();
  api::GroupRequest flags;
  flags.set_dry_run(request.dry_run());
  return Api{socket_, timeout_}.remove<api::Group>(
      group_path(request.name()) + "/members/" + percent_encoded(member), flags);
}

Result<api::Group> AdminClient::group_delete(const api::GroupRequest& request) {
  return Api{socket_, timeout_}.remove<api::Group>(group_path(request.name()), request);
}

Result<api::GroupMark> AdminClient::group_mark_add(const api::GroupMarkRequest& request) {
  return Api{socket_, timeout_}.post<api::GroupMark>(group_path(request.group()) + "/marks",
                                                     request);
}

Result<api::GroupMarkList> AdminClient::group_mark_list(const api::GroupMarkRequest& request) {
  return Api{socket_, timeout_}.get<api::GroupMarkList>(group_path(request.group()) + "/marks");
}

Result<api::GroupMark> AdminClient::group_mark_remove(const api::GroupMarkRequest& request) {
  return Api{socket_, timeout_}.remove<api::GroupMark>(
      group_path(request.group()) + "/marks/" + percent_encoded(request.name()), request);
}

Result<api::GroupView> AdminClient::group_expose(const api::GroupExposeRequest& request) {
  return Api{socket_, timeout_}.post<api::GroupView>(group_path(request.group()) + "/views",
                                                     request);
}

Result<api::GroupRollbackAnswer> AdminClient::group_rollback(
    const api::GroupRollbackRequest& request) {
  return Api{socket_, timeout_}.post<api::GroupRollbackAnswer>(
      group_path(request.group()) + "/rollback", request);
}

Result<api::Access> AdminClient::access_show(const api::AccessRequest& request) {
  return Api{socket_, timeout_}.get<api::Access>(volume_path(request.volume()) + "/access");
}

Result<api::Access> AdminClient::acl_add(const api::AclRequest& request) {
  return Api{socket_, timeout_}.post<api::Access>(volume_path(request.volume()) + "/access/acl",
                                                  request);
}

Result<api::Access> AdminClient::acl_remove(const api::AclRequest& request) {
  return Api{socket_, timeout_}.remove<api::Access>(
      volume_path(request.volume()) + "/access/acl/" + percent_encoded(request.initiator()),
      request);
}

Result<api::Access> AdminClient::auth_set(const api::AuthRequest& request) {
  return Api{socket_, timeout_}.post<api::Access>(volume_path(request.volume()) + "/access/auth",
                                                  request);
}

Result<api::Access> AdminClient::redirect_set(const api::RedirectRequest& request) {
  return Api{socket_, timeout_}.post<api::Access>(
      volume_path(request.volume()) + "/access/redirect", request);
}

Result<api::SessionList> AdminClient::session_list() {
  return Api{socket_, timeout_}.get<api::SessionList>("/v1/sessions");
}

Result<api::Session> AdminClient::session_kick(const api::SessionRequest& request) {
  return Api{socket_, timeout_}.remove<api::Session>("/v1/sessions/" + std::to_string(request.id()),
                                                     request);
}

Result<api::ClusterStatus> AdminClient::cluster_status() {
  return Api{socket_, timeout_}.get<api::ClusterStatus>("/v1/cluster");
}

Result<api::Invitation> AdminClient::node_invite(const api::InviteRequest& request) {
  return Api{socket_, timeout_}.post<api::Invitation>(
      "/v1/nodes/" + percent_encoded(request.node()) + "/invitation", request);
}

Result<api::Promotion> AdminClient::node_promote(const api::PromoteRequest& request) {
  return Api{socket_, timeout_}.post<api::Promotion>(volume_path(request.volume()) + "/promotion",
                                                     request);
}

Result<api::DoctorAnswer> AdminClient::doctor() {
  return Api{socket_, timeout_}.get<api::DoctorAnswer>("/v1/doctor");
}

Result<api::ConfigChanges> AdminClient::config_compare(const api::ConfigCompareRequest& request) {
  return Api{socket_, timeout_}.post<api::ConfigChanges>("/v1/config/compare", request);
}

Result<api::ConfigChanges> AdminClient::config_reload() {
  return Api{socket_, timeout_}.post<api::ConfigChanges>("/v1/config/reload",
                                                         api::ConfigReloadRequest{});
}

}  // namespace mariner::client
