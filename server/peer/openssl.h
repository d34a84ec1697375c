// Owners of OpenSSL's objects, and its errors as ours.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace mariner::peer {

template <auto kFree>
struct OpensslDeleter {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPtr = std::unique_ptr<BIO, OpensslDeleter<&BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslDeleter<&EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, OpensslDeleter<&X509_free>>;
using X509ReqPtr = std::unique_ptr<X509_REQ, OpensslDeleter<&X509_REQ_free>>;
using X509StorePtr = std::unique_ptr<X509_STORE, OpensslDeleter<&X509_STORE_free>>;
using X509StoreCtxPtr = std::unique_ptr<X509_STORE_CTX, OpensslDeleter<&X509_STORE_CTX_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslDeleter<&X509_EXTENSION_free>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, OpensslDeleter<&GENERAL_NAMES_free>>;
using SslCtxPtr = std::unique_ptr<SSL_CTX, OpensslDeleter<&SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpensslDeleter<&SSL_free>>;

// The reason of the oldest error in OpenSSL's queue of this thread, which is emptied; "no reason
// given" when there is none.
[[nodiscard]] std::string openssl_reason();

// "<what>: <reason>".
[[nodiscard]] Error openssl_error(ErrorCode code, std::string_view what);

}  // namespace mariner::peer
