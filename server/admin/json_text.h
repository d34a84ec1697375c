// Writes a message as JSON: the protobuf mapping with names in snake_case and with fields that are
// zero, on one line.
//
// Answers have many small messages: this takes a fraction of what the library's way through a
// binary copy does. Bytes are base64. Types that ours do not use (maps, floating-point numbers) are
// not written.
#pragma once

#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}

namespace mariner::admin {

// `schema`: in place of what the message has in its field of this name; without such a field it is
// the first member. 0: as it is. Text that is no UTF-8 has U+FFFD for each byte that is wrong.
void append_json(const google::protobuf::Message& message, std::string& to, int schema = 0);

// With quotes; UTF-8.
void append_json_string(std::string_view text, std::string& to);

}  // namespace mariner::admin
