// Downloads with Range: if the server answers 206, the transfer continues after the stored bytes; if it answers 200, it
// starts over.
#include "cli/download.hpp"

#include <fmt/format.h>
#include <sys/file.h>

#include <boost/algorithm/string.hpp>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <stiefel/error.hpp>
#include "base/descriptor.hpp"
#include "cli/http.hpp"

namespace stiefel::cli {
namespace {

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
  explicit Transfer(const Download& wanted) : wanted_(wanted), part_(wanted.part) {
    if (part_.size() > wanted.bytes && !part_.clear()) fail_to_write();
  }

  void run() {
    if (part_.size() == wanted_.bytes && wanted_.bytes > 0) return;
    begin_ = part_.size();
    const HttpEnding ending = http_get({.url = wanted_.url,
                                        .begin = begin_,
                                        .stall = wanted_.stall,
                                        .answer =
                                            [this](long status, const std::string& range) {
                                              status_ = status;
                                              range_ = boost::to_lower_copy(range, std::locale::classic());
                                            },
                                        .take = [this](std::string_view bytes) { return take(bytes); }});
    if (write_error_ != 0) fail_to_write();
    if (too_long_) fail("sends more than the {} bytes of the file: it is a different file", wanted_.bytes);
    if (misplaced_) fail("sends a different part of the file than was requested");
    if (status_ >= 400)
      fail("answers {} ({})", status_, status_ == 404 || status_ == 410 ? "there is no such file" : "it refuses");
    judge(ending);
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

  void judge(const HttpEnding& ending) const {
    switch (ending.how) {
      case HttpEnd::stalled:
        fail("has sent nothing for {:g} s; {}", wanted_.stall, progress_text());
      case HttpEnd::closed:
        fail("closed the connection; {}", progress_text());
      case HttpEnd::redirects:
        fail("redirects too often");
      case HttpEnd::unreachable:
        fail("cannot be reached ({})", ending.reason);
      case HttpEnd::complete:
      case HttpEnd::stopped:
        break;
    }
  }
  bool take(std::string_view bytes) {
    if (status_ >= 400) return true;  // the body is an error page
    if (status_ == 206 && part_.size() == begin_) misplaced_ = !range_.starts_with(fmt::format("bytes {}-", begin_));
    if (status_ != 206 && begin_ > 0) {
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
  std::uintmax_t begin_ = 0;  // bytes that were stored before the transfer
  long status_ = 0;
  std::string range_;
  int write_error_ = 0;
  bool too_long_ = false, misplaced_ = false;
};

}  // namespace

void download(const Download& wanted) { Transfer(wanted).run(); }

}  // namespace stiefel::cli
