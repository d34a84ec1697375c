#include "server/node/file_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "server/client/program_place.h"

namespace mariner::node {
namespace {

constexpr std::array<std::string_view, 6> kVerbs = {"ls",   "cat",          "versions",
                                                    "diff", "incarnations", "find"};
constexpr std::size_t kZoneBytesMax = 255;

Error wrong(std::string what) { return {ErrorCode::kInvalidArgument, std::move(what)}; }

Result<void> check_word(const char* member, const std::string& word) {
  if (word.find('\0') == std::string::npos) return {};
  return wrong(fmt::format("{} has a zero byte", member));
}

std::vector<std::string> environment_of(const api::FilesRequest& request) {
  std::vector<std::string> all;
  if (!request.time_zone().empty()) all.push_back("TZ=" + request.time_zone());
  if (const char* const sandbox = std::getenv("MARINER_SANDBOX")) {
    all.push_back(std::string("MARINER_SANDBOX=") + sandbox);
  }
  return all;
}

Result<std::string> find_uvfs() { return client::find_program(client::kFilesProgram); }

}  // namespace

Result<std::vector<std::string>> words_of(const api::FilesRequest& request,
                                          const std::string& socket) {
  if (std::ranges::find(kVerbs, request.verb()) == kVerbs.end()) {
    return wrong(fmt::format("\"{}\" is no question about files: expected one of {}",
                             request.verb(), fmt::join(kVerbs, ", ")));
  }
  if (request.time_zone().size() > kZoneBytesMax) {
    return wrong(fmt::format("time_zone is longer than {} bytes", kZoneBytesMax));
  }
  if (const auto checked = check_word("time_zone", request.time_zone()); !checked) {
    return checked.error();
  }
  std::vector<std::string> words{request.verb()};
  for (const auto& [member, word] :
       {std::pair{"object", &request.object()}, {"other", &request.other()}}) {
    if (word->starts_with('-')) return wrong(fmt::format("{} begins with a -", member));
    if (const auto checked = check_word(member, *word); !checked) return checked.error();
    if (!word->empty()) words.push_back(*word);
  }
  for (const auto& [member, value] : {std::pair{"since", &request.since()},
                                      {"until", &request.until()},
                                      {"name", &request.name()},
                                      {"type", &request.type()}}) {
    if (const auto checked = check_word(member, *value); !checked) return checked.error();
    if (!value->empty()) words.push_back(fmt::format("--{}={}", member, *value));
  }
  for (const auto& [option, given] : {std::pair{"--below", request.below()},
                                      {"--every-write", request.every_write()},
                                      {"--deleted", request.deleted()},
                                      {"--json", request.json()},
                                      {"--quiet", request.quiet()},
                                      {"--terminal", request.terminal()},
                                      {"--no-color", !request.color()}}) {
    if (given) words.emplace_back(option);
  }
  words.push_back("--socket=" + socket);
  return words;
}

FileDesk::FileDesk(boost::asio::io_context& io, Executor& executor, Options options)
    : io_(io), executor_(executor), options_(std::move(options)) {}

FileDesk::~FileDesk() {
  stop();
  for (const auto& each : *queries_) each->wait_for_start();
}

void FileDesk::ask(const api::FilesRequest& request, std::unique_ptr<admin::FilesReply> reply) {
  if (stopped_) return reply->fail({ErrorCode::kUnavailable, "the server is stopping"});
  auto words = words_of(request, options_.socket);
  if (!words) return reply->fail(words.error());
  if (queries_->size() >= kQueriesMax) {
    return reply->fail({ErrorCode::kLimit,
                        fmt::format("{} questions about files are being answered, and no more at a "
                                    "time: ask again when one of them is",
                                    kQueriesMax)});
  }
  const auto place = std::make_shared<std::weak_ptr<FileQuery>>();
  const auto query =
      std::make_shared<FileQuery>(FileQuery::Parts{.io = io_,
                                                   .executor = executor_,
                                                   .still_max = options_.still_max,
                                                   .ended =
                                                       [all = std::weak_ptr(queries_), place] {
                                                         if (const auto left = all.lock())
                                                           left->erase(place->lock());
                                                       }},
                                  std::move(reply));
  *place = query;
  queries_->insert(query);
  query->start([find = options_.find ? options_.find : find_uvfs, words = *std::move(words),
                environment = environment_of(request)]() -> Result<ChildProgram> {
    const auto program = find();
    if (!program) return program.error();
    return ChildProgram::start({.program = *program, .words = words, .environment = environment});
  });
}

bool FileDesk::runs(pid_t process) const {
  return std::ranges::any_of(*queries_, [=](const auto& each) { return each->runs(process); });
}

void FileDesk::stop() {
  stopped_ = true;
  for (const auto& each : Queries(*queries_)) {
    each->end({ErrorCode::kUnavailable, "the server is stopping"});
  }
}

}  // namespace mariner::node
