#include "server/admin/json_text.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <openssl/evp.h>

#include <cstdint>
#include <iterator>

#include "proto/check.h"
#include "proto/utf8.h"

namespace mariner::admin {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr const char* kSchemaName = "schema";

template <typename T>
void append_number(T value, std::string& to) {
  const fmt::format_int text(value);
  to.append(text.data(), text.size());
}

// (Doubles of a reader of JSON have 53 bits.)
template <typename T>
void append_quoted(T value, std::string& to) {
  to += '"';
  append_number(value, to);
  to += '"';
}

void append_base64(const std::string& bytes, std::string& to) {
  to += '"';
  const std::size_t begin = to.size();
  to.resize(begin + (bytes.size() + 2) / 3 * 4 + 1);  // it writes a zero behind the end
  const int written = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(to.data() + begin),
                                      reinterpret_cast<const unsigned char*>(bytes.data()),
                                      static_cast<int>(bytes.size()));
  to.resize(begin + static_cast<std::size_t>(written));
  to += '"';
}

class Writer {
 public:
  Writer(const Message& message, std::string& to)
      : message_(message), reflection_(*message.GetReflection()), to_(to) {}

  void write_message(int schema) {
    const auto& about = *message_.GetDescriptor();
    to_ += '{';
    if (schema != 0 && about.FindFieldByName(kSchemaName) == nullptr) {
      begin(kSchemaName);
      append_number(schema, to_);
    }
    for (int i = 0; i < about.field_count(); ++i) {
      const FieldDescriptor& field = *about.field(i);
      if (field.is_repeated()) {
        begin(field.name());
        write_list(field);
      } else if (!field.has_presence() || reflection_.HasField(message_, &field)) {
        begin(field.name());
        if (schema != 0 && field.name() == kSchemaName) {
          append_number(schema, to_);
        } else {
          write_one(field);
        }
      }
    }
    to_ += '}';
  }

 private:
  void begin(std::string_view name) {
    if (to_.back() != '{') to_ += ',';
    to_ += '"';
    to_ += name;
    to_ += "\":";
  }

  void write_one(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL: write(reflection_.GetBool(message_, &field)); break;
      case FieldDescriptor::CPPTYPE_INT32: write(reflection_.GetInt32(message_, &field)); break;
      case FieldDescriptor::CPPTYPE_UINT32: write(reflection_.GetUInt32(message_, &field)); break;
      case FieldDescriptor::CPPTYPE_INT64: write(reflection_.GetInt64(message_, &field)); break;
      case FieldDescriptor::CPPTYPE_UINT64: write(reflection_.GetUInt64(message_, &field)); break;
      case FieldDescriptor::CPPTYPE_ENUM: write(reflection_.GetEnum(message_, &field)); break;
      case FieldDescriptor::CPPTYPE_STRING:
        write(field, reflection_.GetStringReference(message_, &field, &scratch_));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE: write(reflection_.GetMessage(message_, &field)); break;
      default: CHECK_MSG(false, "a type of a field that no message of ours has");
    }
  }

  void write_list(const FieldDescriptor& field) {
    CHECK(!field.is_map());
    const int count = reflection_.FieldSize(message_, &field);
    to_ += '[';
    for (int i = 0; i < count; ++i) {
      if (i > 0) to_ += ',';
      switch (field.cpp_type()) {
        case FieldDescriptor::CPPTYPE_UINT32:
          write(reflection_.GetRepeatedUInt32(message_, &field, i));
          break;
        case FieldDescriptor::CPPTYPE_UINT64:
          write(reflection_.GetRepeatedUInt64(message_, &field, i));
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          write(field, reflection_.GetRepeatedStringReference(message_, &field, i, &scratch_));
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          write(reflection_.GetRepeatedMessage(message_, &field, i));
          break;
        default: CHECK_MSG(false, "a type of a repeated field that no message of ours has");
      }
    }
    to_ += ']';
  }

  void write(bool value) { to_ += value ? "true" : "false"; }
  void write(std::int32_t value) { append_number(value, to_); }
  void write(std::uint32_t value) { append_number(value, to_); }
  void write(std::int64_t value) { append_quoted(value, to_); }
  void write(std::uint64_t value) { append_quoted(value, to_); }
  void write(const google::protobuf::EnumValueDescriptor* value) {
    append_json_string(value->name(), to_);
  }
  void write(const FieldDescriptor& field, const std::string& text) {
    if (field.type() == FieldDescriptor::TYPE_BYTES) {
      append_base64(text, to_);
    } else if (is_utf8(text)) {
      append_json_string(text, to_);
    } else {
      append_json_string(to_utf8(text), to_);
    }
  }
  void write(const Message& message) { Writer(message, to_).write_message(0); }

  const Message& message_;
  const Reflection& reflection_;
  std::string& to_;
  std::string scratch_;
};

}  // namespace

void append_json(const Message& message, std::string& to, int schema) {
  Writer(message, to).write_message(schema);
}

void append_json_string(std::string_view text, std::string& to) {
  to += '"';
  for (std::size_t written = 0; written < text.size();) {
    const auto plain = [](char each) {
      return static_cast<unsigned char>(each) >= 0x20 && each != '"' && each != '\\' &&
             each != '\x7f';
    };
    std::size_t end = written;
    while (end < text.size() && plain(text[end])) ++end;
    to.append(text.substr(written, end - written));
    written = end;
    if (end == text.size()) break;
    const char each = text[written++];
    switch (each) {
      case '"': to += "\\\""; break;
      case '\\': to += "\\\\"; break;
      case '\b': to += "\\b"; break;
      case '\f': to += "\\f"; break;
      case '\n': to += "\\n"; break;
      case '\r': to += "\\r"; break;
      case '\t': to += "\\t"; break;
      default:
        fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned char>(each));
    }
  }
  to += '"';
}

}  // namespace mariner::admin
