#include "server/peer/openssl.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>

namespace mariner::peer {
namespace {

TEST(Openssl, TheOldestReasonIsTheCause) {
  ERR_clear_error();
  ERR_raise(ERR_LIB_SSL, SSL_R_HTTP_REQUEST);
  ERR_raise(ERR_LIB_SSL, SSL_R_UNKNOWN_PROTOCOL);
  const Error error = openssl_error(ErrorCode::kProtocol, "what");
  EXPECT_EQ(error.code, ErrorCode::kProtocol);
  EXPECT_EQ(error.message, "what: http request");
  EXPECT_EQ(ERR_peek_error(), 0u);
}

TEST(Openssl, NoReason) {
  ERR_clear_error();
  EXPECT_EQ(openssl_reason(), "no reason given");
}

}  // namespace
}  // namespace mariner::peer
