#include "server/peer/certificates.h"

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "proto/check.h"
#include "server/peer/openssl.h"

namespace mariner::peer {
namespace {

constexpr const char* kCurve = "P-256";
constexpr std::size_t kSerialBytes = 16;

BioPtr memory_of(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(bytes)};
}

Error not_made(std::string_view what) { return openssl_error(ErrorCode::kIo, what); }

WallTime time_of(const ASN1_TIME* time) {
  tm calendar{};
  if (ASN1_TIME_to_tm(time, &calendar) != 1) return {};
  return WallTime(std::chrono::seconds(::timegm(&calendar)));
}

bool set_validity(X509* certificate, WallTime from, WallTime to) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), from.time_since_epoch().count()) !=
             nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), to.time_since_epoch().count()) != nullptr;
}

// 127 random bits: serial numbers are positive and nobody can guess them (RFC 5280 4.1.2.2).
bool set_serial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
  BIGNUM* const number = BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr);
  const bool set = number != nullptr &&
                   BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

bool set_common_name(X509_NAME* name, const std::string& text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, bytes, static_cast<int>(text.size()),
                                    -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Only such keys are signed: whatever else a foreign request brings is not looked at.
bool on_our_curve(EVP_PKEY* key) {
  std::array<char, 32> curve{};
  std::size_t length = 0;
  return EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_group_name(key, curve.data(), curve.size(), &length) == 1 &&
         std::string_view(curve.data(), length) == SN_X9_62_prime256v1;
}

}  // namespace

Result<PrivateKey> PrivateKey::generate() {
  EVP_PKEY* const key = EVP_EC_gen(kCurve);
  if (key == nullptr) return not_made("cannot make a private key");
  return PrivateKey({key, EVP_PKEY_free});
}

Result<PrivateKey> PrivateKey::from_pem(std::string_view pem) {
  const BioPtr memory = memory_of(pem);
  // A key with a passphrase is none of ours: nobody is asked for it.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr);
  if (key == nullptr) return openssl_error(ErrorCode::kInvalidArgument, "not a private key in PEM");
  return PrivateKey({key, EVP_PKEY_free});
}

std::string PrivateKey::to_pem() const {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PKCS8PrivateKey(memory.get(), key_.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) == 1);
  return text_of(memory.get());
}

Result<Certificate> Certificate::from_pem(std::string_view pem) {
  const BioPtr memory = memory_of(pem);
  X509* const certificate = PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr);
  if (certificate == nullptr) {
    return openssl_error(ErrorCode::kInvalidArgument, "not a certificate in PEM");
  }
  return Certificate({certificate, X509_free});
}

Result<Certificate> Certificate::from_der(std::string_view der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  X509Ptr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (!certificate) return openssl_error(ErrorCode::kInvalidArgument, "not a certificate");
  if (at != reinterpret_cast<const unsigned char*>(der.data()) + der.size()) {
    return Error{ErrorCode::kInvalidArgument, "not a certificate: something follows it"};
  }
  return Certificate({certificate.release(), X509_free});
}

Certificate Certificate::of(x509_st* certificate) {
  CHECK(X509_up_ref(certificate) == 1);
  return Certificate({certificate, X509_free});
}

std::string Certificate::to_pem() const {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(memory.get(), certificate_.get()) == 1);
  return text_of(memory.get());
}

std::string Certificate::to_der() const {
  const int bytes = i2d_X509(certificate_.get(), nullptr);
  CHECK(bytes > 0);
  std::string der(static_cast<std::size_t>(bytes), '\0');
  auto* at = reinterpret_cast<unsigned char*>(der.data());
  CHECK(i2d_X509(certificate_.get(), &at) == bytes);
  return der;
}

std::string Certificate::fingerprint() const {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  CHECK(X509_digest(certificate_.get(), EVP_sha256(), digest.data(), nullptr) == 1);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

Result<NodeName> Certificate::node_name() const {
  const GeneralNamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate_.get(), NID_subject_alt_name, nullptr, nullptr)));
  if (!names || sk_GENERAL_NAME_num(names.get()) != 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "the certificate does not name one node: expected one subjectAltName, the URI "
                 "mariner://CLUSTER/NODE"};
  }
  const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) {
    return Error{ErrorCode::kInvalidArgument,
                 "the certificate's subjectAltName is no URI: expected mariner://CLUSTER/NODE"};
  }
  const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
  return parse_uri({reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                    static_cast<std::size_t>(ASN1_STRING_length(uri))});
}

WallTime Certificate::not_before() const {
  return time_of(X509_get0_notBefore(certificate_.get()));
}
WallTime Certificate::not_after() const { return time_of(X509_get0_notAfter(certificate_.get())); }

bool Certificate::belongs_to(const PrivateKey& key) const {
  return EVP_PKEY_eq(X509_get0_pubkey(certificate_.get()), key.get()) == 1;
}

Result<Authority> make_authority(std::string_view cluster, WallTime now) {
  auto key = PrivateKey::generate();
  if (!key) return key.error();
  const X509Ptr made(X509_new());
  X509* const ca = made.get();
  const std::string name = fmt::format("Mariner cluster {}", cluster);
  const bool good = ca != nullptr && X509_set_version(ca, X509_VERSION_3) == 1 && set_serial(ca) &&
                    set_common_name(X509_get_subject_name(ca), name) &&
                    X509_set_issuer_name(ca, X509_get_subject_name(ca)) == 1 &&
                    set_validity(ca, now - kCertificateBackdated, now + kCertificateLife) &&
                    X509_set_pubkey(ca, key->get()) == 1 &&
                    add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    add_extension(ca, ca, NID_subject_key_identifier, "hash") &&
                    X509_sign(ca, key->get(), EVP_sha256()) > 0;
  if (!good) return not_made("cannot make the cluster's authority");
  return Authority{Certificate::of(ca), std::move(*key)};
}

Result<std::string> make_signing_request(const PrivateKey& key) {
  const X509ReqPtr request(X509_REQ_new());
  const bool good = request && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
                    X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0;
  if (!good) return not_made("cannot make a signing request");
  const int bytes = i2d_X509_REQ(request.get(), nullptr);
  CHECK(bytes > 0);
  std::string der(static_cast<std::size_t>(bytes), '\0');
  auto* at = reinterpret_cast<unsigned char*>(der.data());
  CHECK(i2d_X509_REQ(request.get(), &at) == bytes);
  return der;
}

Result<Certificate> sign_node(const Authority& authority, const NodeName& name,
                              std::string_view signing_request, WallTime now) {
  const auto* at = reinterpret_cast<const unsigned char*>(signing_request.data());
  const X509ReqPtr request(d2i_X509_REQ(nullptr, &at, static_cast<long>(signing_request.size())));
  if (!request) return openssl_error(ErrorCode::kInvalidArgument, "not a signing request");
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || !on_our_curve(key)) {
    return Error{ErrorCode::kInvalidArgument,
                 "the signing request's key is of another kind: expected EC P-256"};
  }
  if (X509_REQ_verify(request.get(), key) != 1) {
    return openssl_error(ErrorCode::kInvalidArgument, "the signing request's signature is wrong");
  }

  X509* const ca = authority.certificate.get();
  const WallTime end = std::min(now + kCertificateLife, authority.certificate.not_after());
  const X509Ptr made(X509_new());
  X509* const node = made.get();
  const bool good = node != nullptr && X509_set_version(node, X509_VERSION_3) == 1 &&
                    set_serial(node) && set_common_name(X509_get_subject_name(node), name.node) &&
                    X509_set_issuer_name(node, X509_get_subject_name(ca)) == 1 &&
                    set_validity(node, now - kCertificateBackdated, end) &&
                    X509_set_pubkey(node, key) == 1 &&
                    add_extension(node, ca, NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(node, ca, NID_key_usage, "critical,digitalSignature") &&
                    add_extension(node, ca, NID_ext_key_usage, "serverAuth,clientAuth") &&
                    add_extension(node, ca, NID_subject_alt_name, "URI:" + to_uri(name)) &&
                    add_extension(node, ca, NID_subject_key_identifier, "hash") &&
                    add_extension(node, ca, NID_authority_key_identifier, "keyid:always") &&
                    X509_sign(node, authority.key.get(), EVP_sha256()) > 0;
  if (!good) return not_made("cannot make the node's certificate");
  return Certificate::of(node);
}

Result<void> check_issued(const Certificate& node, const Certificate& authority, WallTime now) {
  const X509StorePtr store(X509_STORE_new());
  const X509StoreCtxPtr context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_add_cert(store.get(), authority.get()) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), node.get(), nullptr) != 1) {
    return not_made("cannot check a certificate");
  }
  X509_STORE_CTX_set_time(context.get(), 0, now.time_since_epoch().count());
  if (X509_verify_cert(context.get()) == 1) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the certificate is not good: {}",
                           X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())))};
}

}  // namespace mariner::peer
