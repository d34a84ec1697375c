// What a path of the admin API is: its method, its pattern, and the function that answers it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/admin/api_router.h"
#include "server/admin/control.h"
#include "server/admin/json.h"
#include "server/admin/query.h"
#include "server/web/http_message.h"

namespace mariner::admin {

inline void fail(web::HttpReply& reply, const Error& error) {
  reply.send({http_status(error.code), web::kJson, to_json(error) + "\n", {}});
}

// A completion that sends whatever Control answers.
template <typename T>
Answer<T> answer(web::HttpReply reply) {
  return [reply = std::move(reply)](Result<T> result) mutable {
    if (result) {
      reply.send({200, web::kJson, to_json(*result) + "\n", {}});
    } else {
      fail(reply, result.error());
    }
  };
}

// What a route's handler works with: the parts of the path that the pattern leaves open, decoded.
struct Call {
  web::HttpRequest request;
  std::vector<std::string> names;
  web::HttpReply reply;
  Control& control;
};

// The message of a request: the JSON body of a POST or PUT, the query of everything else. Nothing
// if it cannot be read; the client has then been told.
template <typename Message>
std::optional<Message> read(Call& call) {
  Message message;
  const bool has_body =
      call.request.method == web::HttpMethod::kPost || call.request.method == web::HttpMethod::kPut;
  auto valid = from_query(call.request.query, message);
  if (valid && has_body) valid = from_json(call.request.body, message);
  if (valid) return message;
  fail(call.reply, valid.error());
  return std::nullopt;
}

struct Route {
  web::HttpMethod method;
  std::string_view pattern;  // "*" stands for one name
  void (*handle)(Call& call);
  bool for_queries = false;  // programs that answer questions about files may do that, too
};

}  // namespace mariner::admin
