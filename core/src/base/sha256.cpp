// SHA-256 (FIPS 180-4) by OpenSSL's EVP interface.
#include "base/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/descriptor.hpp"
#include "base/file_error.hpp"

namespace stiefel {
namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    require(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }

  void update(const void* data, std::size_t bytes) { require(EVP_DigestUpdate(context_.get(), data, bytes) == 1); }

  std::string hexadecimal() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned length = 0;
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1);
    return fmt::format("{:02x}", fmt::join(digest.data(), digest.data() + length, ""));
  }

 private:
  static void require(bool worked) {
    if (!worked)
      throw Error("OpenSSL's libcrypto could not compute a SHA-256; its installation seems incomplete", Exit::internal);
  }
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace

std::string sha256(std::string_view text) {
  Digest digest;
  digest.update(text.data(), text.size());
  return digest.hexadecimal();
}

std::string sha256_of_file(const std::filesystem::path& path, std::uint64_t skipped) {
  const Descriptor file = open_file(path, O_RDONLY);
  if (skipped > 0 && ::lseek(*file, off_t(skipped), SEEK_SET) < 0) throw file_error("reading", path, errno);
  Digest digest;
  std::vector<char> buffer(std::size_t(1) << 20);
  while (true) {
    const ssize_t got = ::read(*file, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error("reading", path, errno);
    if (got == 0) return digest.hexadecimal();
    digest.update(buffer.data(), std::size_t(got));
  }
}

}  // namespace stiefel
