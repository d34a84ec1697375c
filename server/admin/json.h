// The messages of proto/admin.proto as JSON: the protobuf mapping with names in snake_case and with
// fields that are zero, on one line. 64-bit numbers are strings, as that mapping has them.
#pragma once

#include <string>
#include <string_view>

#include "proto/error.h"

namespace google::protobuf {
class Message;
}

namespace mariner::admin {

// The version of the answers' meaning, as the member "schema" of every answer.
inline constexpr int kSchema = 1;

// Always begins with {"schema":1; a message without such a field gets the member, too.
[[nodiscard]] std::string to_json(const google::protobuf::Message& message);

// What from_json() reads: only the fields that are set.
[[nodiscard]] std::string to_request_json(const google::protobuf::Message& message);

// {"schema":1,"error":{"code":"not-found","message":"..."}}.
[[nodiscard]] std::string to_json(const Error& error);

// Reads a request: a member that does not exist is an error, so that a misspelled flag is not
// taken for its default. An empty text is an empty message.
[[nodiscard]] Result<void> from_json(std::string_view text, google::protobuf::Message& message);

// Reads an answer: what a newer daemon has added is ignored.
[[nodiscard]] Result<void> from_answer_json(std::string_view text,
                                            google::protobuf::Message& message);

// The error in an answer to_json(Error) made; kProtocol if it is none.
[[nodiscard]] Error error_from_json(std::string_view text);

// The code of that name; kIo for one that this version does not know.
[[nodiscard]] ErrorCode error_code_of(std::string_view name);

}  // namespace mariner::admin
