#include "server/admin/json.h"

#include <fmt/format.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "proto/admin.pb.h"
#include "proto/check.h"
#include "proto/utf8.h"
#include "server/admin/json_text.h"

namespace mariner::admin {
namespace {

namespace util = google::protobuf::util;

// For what is small.
std::string plain_json(const google::protobuf::Message& message, bool with_zeros = true) {
  util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = with_zeros;
  std::string text;
  // Fails only for messages with types that ours do not use.
  CHECK(util::MessageToJsonString(message, &text, options).ok());
  return text;
}

// Answers quote what initiators sent, such as their names: protobuf takes only UTF-8.
void make_utf8(google::protobuf::Message& message) {
  const auto& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    const bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    const bool is_string = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
    if (is_message && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        make_utf8(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    } else if (is_message) {
      make_utf8(*reflection.MutableMessage(&message, field));
    } else if (is_string && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        reflection.SetRepeatedString(&message, field, i,
                                     to_utf8(reflection.GetRepeatedString(message, field, i)));
      }
    } else if (is_string) {
      reflection.SetString(&message, field, to_utf8(reflection.GetString(message, field)));
    }
  }
}

Result<void> parse(std::string_view text, google::protobuf::Message& message, bool ignore_unknown) {
  util::JsonParseOptions options;
  options.ignore_unknown_fields = ignore_unknown;
  message.Clear();
  if (text.empty()) return {};
  if (!is_utf8(text)) return Error{ErrorCode::kInvalidArgument, "the body is not UTF-8"};
  const auto status = util::JsonStringToMessage({text.data(), text.size()}, &message, options);
  if (status.ok()) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("this is no {} in JSON: {}", message.GetDescriptor()->name(), status.ToString())};
}

}  // namespace

std::string to_json(const google::protobuf::Message& message) {
  std::string text;
  append_json(message, text, kSchema);
  return text;
}

std::string to_request_json(const google::protobuf::Message& message) {
  const std::unique_ptr<google::protobuf::Message> copy(message.New());
  copy->CopyFrom(message);
  make_utf8(*copy);
  return plain_json(*copy, false);
}

std::string to_json(const Error& error) {
  api::Error message;
  message.set_code(std::string(error_code_name(error.code)));
  message.set_message(error.message);
  std::string text = fmt::format("{{\"schema\":{},\"error\":", kSchema);
  append_json(message, text);
  return text + "}";
}

Result<void> from_json(std::string_view text, google::protobuf::Message& message) {
  return parse(text, message, false);
}

Result<void> from_answer_json(std::string_view text, google::protobuf::Message& message) {
  return parse(text, message, true);
}

Error error_from_json(std::string_view text) {
  google::protobuf::Struct answer;
  api::Error error;
  const auto parsed = parse(text, answer, true);
  const auto member = answer.fields().find("error");
  if (!parsed || member == answer.fields().end() ||
      !parse(plain_json(member->second), error, true) || error.code().empty()) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the daemon's answer is not understood: {}", text.substr(0, 200))};
  }
  return Error{error_code_of(error.code()), error.message()};
}

ErrorCode error_code_of(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kMiscompare); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (error_code_name(code) == name) return code;
  }
  return ErrorCode::kIo;
}

}  // namespace mariner::admin
