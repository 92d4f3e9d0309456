// A wheel is linked on one system and runs on older ones. Two functions have newer versions in GLIBC 2.35 and in libstdc++ 12, to which
// the linker would bind every call; these definitions, which only the library or program that contains them sees, bind to the old ones.
#include <condition_variable>
#include <mutex>

#if defined(__x86_64__)
__asm__(".symver older_hypot,hypot@GLIBC_2.2.5");
#else
__asm__(".symver older_hypot,hypot@GLIBC_2.17");
#endif
__asm__(".symver older_wait,_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

extern "C" {
double older_hypot(double, double);
void older_wait(std::condition_variable*, std::unique_lock<std::mutex>*);

[[gnu::visibility("hidden")]] double hypot_of_this_file(double x, double y) __asm__("hypot");
double hypot_of_this_file(double x, double y) { return older_hypot(x, y); }

[[gnu::visibility("hidden")]] void wait_of_this_file(
    std::condition_variable* condition,
    std::unique_lock<std::mutex>* lock) __asm__("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void wait_of_this_file(std::condition_variable* condition, std::unique_lock<std::mutex>* lock) {
  older_wait(condition, lock);
}
}
