// Downloads with libcurl and Range: if the server answers 206, the transfer continues after the stored bytes; if it
// answers 200, it starts over.
#include "cli/download.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <cerrno>
#include <cmath>
#include <memory>
#include <string_view>
#include <system_error>

#include <stiefel/error.hpp>
#include "base/descriptor.hpp"

namespace stiefel::cli {
namespace {

constexpr long slowest = 100;  // bytes per second; anything slower counts as stalled

std::string reason(int code) { return std::generic_category().message(code); }

/// The part file, locked against other processes while the object lives.
class PartFile {
 public:
  explicit PartFile(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (*file_ < 0) throw Error(fmt::format("cannot write {} ({})", path.string(), reason(errno)), Exit::data);
    if (::flock(*file_, LOCK_EX | LOCK_NB) != 0)
      throw Error(fmt::format("another process is fetching {}; wait for it to finish", path.string()), Exit::in_use);
    size_ = std::uintmax_t(::lseek(*file_, 0, SEEK_END));
  }

  std::uintmax_t size() const { return size_; }
  bool clear() { return ::ftruncate(*file_, 0) == 0 && ::lseek(*file_, 0, SEEK_SET) == 0 && ((size_ = 0), true); }
  /// False if writing fails; errno has the reason.
  bool append(std::string_view bytes) {
    if (!write_whole(*file_, bytes)) return false;
    size_ += bytes.size();
    return true;
  }

 private:
  Descriptor file_;
  std::uintmax_t size_ = 0;
};

class Transfer {
 public:
  explicit Transfer(const Download& wanted)
      : wanted_(wanted), part_(wanted.part), curl_(curl_easy_init(), curl_easy_cleanup) {
    if (!curl_) throw Error("cannot initialize libcurl; its installation seems incomplete", Exit::internal);
    if (part_.size() > wanted.bytes && !part_.clear()) fail_to_write();
  }

  void run() {
    if (part_.size() == wanted_.bytes && wanted_.bytes > 0) return;
    begin_ = part_.size();
    set_up();
    const CURLcode code = curl_easy_perform(curl_.get());
    if (write_error_ != 0) fail_to_write();
    if (too_long_) fail("sends more than the {} bytes of the file: it is a different file", wanted_.bytes);
    if (misplaced_) fail("sends a different part of the file than was requested");
    const long status = answer();
    if (status >= 400)
      fail("answers {} ({})", status, status == 404 || status == 410 ? "there is no such file" : "it refuses");
    if (code == CURLE_OPERATION_TIMEDOUT) fail("has sent nothing for {:g} s; {}", wanted_.stall, progress_text());
    if (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING)
      fail("closed the connection; {}", progress_text());
    if (code == CURLE_TOO_MANY_REDIRECTS) fail("redirects too often");
    if (code != CURLE_OK) fail("cannot be reached ({})", *message_ ? message_ : curl_easy_strerror(code));
    if (part_.size() < wanted_.bytes)
      fail("sent a file of {} bytes, expected {}: it is a different file", part_.size(), wanted_.bytes);
  }

 private:
  template <class... Values> [[noreturn]] void fail(fmt::format_string<Values...> format, Values&&... values) const {
    throw Error(fmt::format("{} {}", wanted_.url, fmt::format(format, std::forward<Values>(values)...)), Exit::data);
  }
  [[noreturn]] void fail_to_write() const {
    throw Error(fmt::format("cannot write {} ({})", wanted_.part.string(), reason(write_error_ ? write_error_ : errno)),
                Exit::exhausted);
  }
  std::string progress_text() const {
    return fmt::format("{} of {} bytes are stored; repeat the command to continue", part_.size(), wanted_.bytes);
  }

  template <class T> void set(CURLoption option, T value) {
    if (curl_easy_setopt(curl_.get(), option, value) != CURLE_OK)
      throw Error("libcurl lacks a required option; its version seems too old", Exit::internal);
  }
  long answer() const {
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  void set_up() {
    const long stall = std::max(1L, std::lround(wanted_.stall));
    set(CURLOPT_URL, wanted_.url.c_str());
    set(CURLOPT_USERAGENT, "stiefel/" STIEFEL_VERSION);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 10L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, stall);
    set(CURLOPT_LOW_SPEED_LIMIT, slowest);
    set(CURLOPT_LOW_SPEED_TIME, stall);
    set(CURLOPT_ERRORBUFFER, message_);
    set(CURLOPT_WRITEFUNCTION, &Transfer::on_bytes);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    set(CURLOPT_HEADERDATA, this);
    if (begin_ == 0) return;
    range_ = fmt::format("{}-", begin_);
    set(CURLOPT_RANGE, range_.c_str());
  }

  /// Stores the range of a header "Content-Range: bytes FIRST-LAST/ALL". Called for every header of every response,
  /// including redirects.
  static std::size_t on_header(const char* bytes, std::size_t, std::size_t size, void* self) {
    constexpr std::string_view name = "content-range: bytes ";
    const std::string line = boost::to_lower_copy(std::string(bytes, size), std::locale::classic());
    if (line.starts_with(name)) static_cast<Transfer*>(self)->range_sent_ = line.substr(name.size());
    return size;
  }
  static std::size_t on_bytes(const char* bytes, std::size_t, std::size_t size, void* self) {
    return static_cast<Transfer*>(self)->take({bytes, size}) ? size : size + 1;  // another number ends the transfer
  }
  bool take(std::string_view bytes) {
    const long status = answer();
    if (status >= 400) return true;  // the body is an error page
    if (status == 206 && part_.size() == begin_) misplaced_ = !range_sent_.starts_with(fmt::format("{}-", begin_));
    if (status != 206 && begin_ > 0) {
      begin_ = 0;
      if (!part_.clear()) write_error_ = errno;
    }
    too_long_ = bytes.size() > wanted_.bytes - part_.size();
    if (misplaced_ || too_long_ || write_error_ != 0) return false;
    if (!part_.append(bytes)) write_error_ = errno;
    if (wanted_.progress) wanted_.progress(part_.size());
    return write_error_ == 0;
  }

  const Download& wanted_;
  PartFile part_;
  std::unique_ptr<CURL, void (*)(CURL*)> curl_;
  std::uintmax_t begin_ = 0;  // bytes that were stored before the transfer
  std::string range_, range_sent_;
  char message_[CURL_ERROR_SIZE] = "";
  int write_error_ = 0;
  bool too_long_ = false, misplaced_ = false;
};

}  // namespace

void download(const Download& wanted) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error("cannot initialize libcurl; its installation seems incomplete", Exit::internal);
  Transfer(wanted).run();
}

}  // namespace stiefel::cli
