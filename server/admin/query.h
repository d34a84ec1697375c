// Requests in a URL: the fields of a message as a query ("from.time_ns=5&buckets=60"), and names in
// a path, percent-encoded (RFC 3986).
#pragma once

#include <string>
#include <string_view>

#include "proto/error.h"

namespace google::protobuf {
class Message;
}

namespace mariner::admin {

// Sets the fields that `query` names; fields of messages inside are reached with a dot. Numbers,
// booleans and strings only. kInvalidArgument: no such field, not its type, or not decodable.
[[nodiscard]] Result<void> from_query(std::string_view query, google::protobuf::Message& message);

// The query that from_query() reads: every field that is set and not zero.
[[nodiscard]] std::string to_query(const google::protobuf::Message& message);

// Everything but letters, digits and "-._~" as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text);
// kInvalidArgument: a '%' without two hexadecimal digits, a zero byte, or no UTF-8.
[[nodiscard]] Result<std::string> percent_decoded(std::string_view text);

}  // namespace mariner::admin
