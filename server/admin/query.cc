#include "server/admin/query.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <charconv>

#include "proto/utf8.h"

namespace mariner::admin {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Error wrong(std::string_view name, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("query parameter \"{}\": {}", name, why)};
}

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

Result<void> set_field(Message& message, const FieldDescriptor& field, std::string_view name,
                       const std::string& value) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: reflection.SetString(&message, &field, value); return {};
    case FieldDescriptor::CPPTYPE_BOOL:
      if (value != "true" && value != "false") return wrong(name, "expected true or false");
      reflection.SetBool(&message, &field, value == "true");
      return {};
    case FieldDescriptor::CPPTYPE_UINT32: {
      std::uint32_t number = 0;
      if (!parse_number(value, number)) return wrong(name, "expected a whole number below 2^32");
      reflection.SetUInt32(&message, &field, number);
      return {};
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      std::uint64_t number = 0;
      if (!parse_number(value, number)) return wrong(name, "expected a whole number below 2^64");
      reflection.SetUInt64(&message, &field, number);
      return {};
    }
    default: return wrong(name, "this field cannot stand in a query");
  }
}

// `path` is what is left of `name` at `message`.
Result<void> set_path(Message& message, std::string_view path, std::string_view name,
                      const std::string& value) {
  const auto dot = path.find('.');
  const auto* field = message.GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
  if (field == nullptr || field->is_repeated()) return wrong(name, "there is no such parameter");
  if (dot == std::string_view::npos) return set_field(message, *field, name, value);
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return wrong(name, "there is no such parameter");
  return set_path(*message.GetReflection()->MutableMessage(&message, field), path.substr(dot + 1),
                  name, value);
}

void append_query(std::string& to, const std::string& prefix, const Message& message) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    const auto name = prefix + field->name();
    const auto add = [&to, &name](std::string_view value) {
      to += fmt::format("{}{}={}", to.empty() ? "" : "&", name, percent_encoded(value));
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        append_query(to, name + ".", reflection.GetMessage(message, field));
        break;
      case FieldDescriptor::CPPTYPE_STRING: add(reflection.GetString(message, field)); break;
      case FieldDescriptor::CPPTYPE_BOOL:
        add(reflection.GetBool(message, field) ? "true" : "false");
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        add(std::to_string(reflection.GetUInt32(message, field)));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        add(std::to_string(reflection.GetUInt64(message, field)));
        break;
      default: break;
    }
  }
}

}  // namespace

Result<void> from_query(std::string_view query, Message& message) {
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto name = pair.substr(0, equals);
    const auto value = percent_decoded(equals == std::string_view::npos ? std::string_view{}
                                                                        : pair.substr(equals + 1));
    if (!value) return value.error();
    const auto set = set_path(message, name, name, *value);
    if (!set) return set;
  }
  return {};
}

std::string to_query(const Message& message) {
  std::string query;
  append_query(query, "", message);
  return query;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kUnreserved =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

Result<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
      return Error{ErrorCode::kInvalidArgument,
                   "the URL has a '%' without two hexadecimal digits, or a zero byte"};
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (!is_utf8(decoded)) return Error{ErrorCode::kInvalidArgument, "the URL is not UTF-8"};
  return decoded;
}

}  // namespace mariner::admin
