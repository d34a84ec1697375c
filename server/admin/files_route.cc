#include "server/admin/files_route.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proto/utf8.h"
#include "server/admin/api_router.h"
#include "server/admin/json.h"
#include "server/admin/query.h"

namespace mariner::admin {
namespace {

class HttpFilesReply final : public FilesReply {
 public:
  explicit HttpFilesReply(web::HttpReply reply) : reply_(std::move(reply)) {}

  void on_gone(UniqueFunction<void()> gone) override { reply_->on_gone(std::move(gone)); }

  void write(std::string bytes, UniqueFunction<void()> taken) override {
    begun_ = true;
    *taking_ = true;
    reply_->write(std::move(bytes), [taking = taking_, taken = std::move(taken)]() mutable {
      *taking = false;
      taken();
    });
  }

  void end(int exit_code, std::string errors) override {
    // (It may have been cut, or be of a program that something has gone wrong with.)
    std::erase(errors, '\0');
    reply_->end({{kExitTrailer, std::to_string(exit_code)},
                 {kErrorsTrailer, percent_encoded(to_utf8(errors))}});
  }

  void fail(const Error& error) override {
    // (A client that does not take what it has been sent sees the answer break off.)
    if (*taking_) return reply_.reset();
    if (begun_) return end(1, "marinerd: " + error.message + "\n");
    reply_->send({http_status(error.code), web::kJson, to_json(error) + "\n", {}});
  }

 private:
  std::optional<web::HttpReply> reply_;
  bool begun_ = false;
  const std::shared_ptr<bool> taking_ = std::make_shared<bool>(false);
};

}  // namespace

void answer_files(const api::FilesRequest& request, web::HttpReply reply, FilesSource& source) {
  source.ask(request, std::make_unique<HttpFilesReply>(std::move(reply)));
}

}  // namespace mariner::admin
