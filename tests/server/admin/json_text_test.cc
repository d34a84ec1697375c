#include "server/admin/json_text.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <random>
#include <string>

#include "proto/admin.pb.h"
#include "proto/files.pb.h"
#include "proto/utf8.h"

namespace mariner::admin {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string json_of(const Message& message, int schema = 0) {
  std::string text;
  append_json(message, text, schema);
  return text;
}

// Something in each of its fields, or in most of them.
void fill(Message& message, std::mt19937_64& random, int depth) {
  const auto& about = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  const auto number = [&] { return random() >> (random() % 64); };
  const auto text = [&] {
    std::string some;
    for (std::size_t i = random() % 9; i > 0; --i) some += static_cast<char>(random() % 128);
    return some + (random() % 4 == 0 ? "\u00fc\u2028<>" : "");
  };
  for (int i = 0; i < about.field_count(); ++i) {
    const FieldDescriptor* const field = about.field(i);
    for (std::size_t times = random() % 4; times > 0 && depth > 0; --times) {
      const bool many = field->is_repeated();
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_BOOL: reflection.SetBool(&message, field, true); break;
        case FieldDescriptor::CPPTYPE_INT32:
          reflection.SetInt32(&message, field, -static_cast<std::int32_t>(number() % (1u << 31)));
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          reflection.SetInt64(&message, field, static_cast<std::int64_t>(number()));
          break;
        case FieldDescriptor::CPPTYPE_UINT32: {
          const auto value = static_cast<std::uint32_t>(number());
          many ? reflection.AddUInt32(&message, field, value)
               : reflection.SetUInt32(&message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_UINT64:
          many ? reflection.AddUInt64(&message, field, number())
               : reflection.SetUInt64(&message, field, number());
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          many ? reflection.AddString(&message, field, text())
               : reflection.SetString(&message, field, text());
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          fill(many ? *reflection.AddMessage(&message, field)
                    : *reflection.MutableMessage(&message, field),
               random, depth - 1);
          break;
        default: FAIL() << field->full_name();
      }
    }
  }
}

// Of every message that there is: what the library reads in it is what was written, and it is what
// the library writes, but for what that escapes without need.
TEST(JsonText, IsWhatTheLibraryReads) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  const auto plain = [](std::string text) {
    for (const auto& [escaped, letter] :
         {std::pair{"\\u003c", "<"}, {"\\u003e", ">"}, {"\\u2028", "\u2028"}}) {
      for (auto at = text.find(escaped); at != std::string::npos; at = text.find(escaped, at)) {
        text.replace(at, 6, letter);
      }
    }
    return text;
  };
  std::mt19937_64 random(1);
  for (const auto* file :
       {api::Volume::descriptor()->file(), api::FileList::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      const Descriptor* const about = file->message_type(i);
      const Message* const prototype =
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(about);
      for (int depth = 0; depth < 5; ++depth) {
        const std::unique_ptr<Message> message(prototype->New());
        fill(*message, random, depth);
        const std::string text = json_of(*message);
        const std::unique_ptr<Message> read(prototype->New());
        const auto parsed = google::protobuf::util::JsonStringToMessage(text, read.get());
        ASSERT_TRUE(parsed.ok()) << about->full_name() << ": " << parsed.ToString() << text;
        EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*message, *read)) << text;
        std::string theirs;
        ASSERT_TRUE(google::protobuf::util::MessageToJsonString(*message, &theirs, options).ok());
        EXPECT_EQ(text, plain(theirs));
      }
    }
  }
}

TEST(JsonText, TheSchemaComesFirst) {
  EXPECT_EQ(json_of(api::MomentSpec{}, 1), "{\"schema\":1}");
  api::VolumeList list;
  list.set_schema(7);
  EXPECT_EQ(json_of(list, 1).find("{\"schema\":1,"), 0u);
  EXPECT_EQ(json_of(list).find("{\"schema\":7,"), 0u);
}

TEST(JsonText, NoTextBreaksIt) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    api::Error error;
    error.set_message(bytes);
    api::Error read;
    RC_ASSERT(google::protobuf::util::JsonStringToMessage(json_of(error), &read).ok());
    RC_ASSERT(read.message() == to_utf8(bytes));
  }));
  std::string text;
  append_json_string("a\"\\\n\r\t\x01\x7f<", text);
  EXPECT_EQ(text, R"("a\"\\\n\r\t\u0001\u007f<")");
}

}  // namespace
}  // namespace mariner::admin
