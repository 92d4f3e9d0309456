// A sound map whose constructor, or refresh() for `grows`, does something to the whole process, as `fault` says.
//
//   rounding, denormals, traps   changes the arithmetic
//   signals, blocked             ignores SIGHUP, or blocks SIGUSR2
//   folder, umask, locale, environment
//   descriptor, closed           leaves a file open, or closes what others opened
//   thread, process              starts one and does not wait for it
//   output                       prints to standard output
//   grows                        loses 4096 bytes in each call
#include <fcntl.h>
#include <fenv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tests/plugins/plain_map.hpp"

namespace {
using namespace stiefel;

void flush_denormals() {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8000);
#elif defined(__aarch64__)
  unsigned long bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  asm volatile("msr fpcr, %0" ::"r"(bits | (1ul << 24)));
#endif
}

template <class S> class HostileProcess final : public PlainMap<S> {
 public:
  struct Options {
    std::string fault = "none";
    void describe(Schema& s) { s.field("fault", fault, "what is wrong"); }
  };
  HostileProcess(const Options& options, Shape shape) : PlainMap<S>({}, shape), grows_(options.fault == "grows") {
    const std::string& fault = options.fault;
    if (fault == "rounding") fesetround(FE_UPWARD);
    if (fault == "denormals") flush_denormals();
    if (fault == "traps") feenableexcept(FE_DIVBYZERO);
    if (fault == "signals") std::signal(SIGHUP, SIG_IGN);
    if (fault == "blocked") {
      sigset_t blocked;
      sigemptyset(&blocked);
      sigaddset(&blocked, SIGUSR2);
      pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    }
    if (fault == "folder" && chdir("/") != 0) throw Error("there is no /");
    if (fault == "umask") umask(0123);
    if (fault == "locale") std::setlocale(LC_ALL, "C.UTF-8");
    if (fault == "environment") setenv("HOSTILE", "1", 1);
    if (fault == "descriptor") open("/dev/null", O_RDONLY);
    if (fault == "closed") close(STDIN_FILENO);
    static bool before = false;
    if (std::exchange(before, true)) return;
    if (fault == "thread") std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
    if (fault == "process" && fork() == 0) std::this_thread::sleep_for(std::chrono::seconds(30));
    if (fault == "output") std::puts("hello from the plugin");
  }
  void refresh(CBlocks<S> theta) override {
    PlainMap<S>::refresh(theta);
    if (grows_) lost = std::malloc(4096);
  }

 private:
  static inline void* volatile lost = nullptr;
  bool grows_;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileProcess>("hostile_process",
                                                               "map that changes the process in a way to choose"))
