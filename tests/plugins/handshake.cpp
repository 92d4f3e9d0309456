// A plugin table written by hand, with one thing wrong as the FIXTURE_ macros say. Without any it is sound.
#include "still.hpp"

#if defined(FIXTURE_SDK)
#undef STIEFEL_SDK_ID
#define STIEFEL_SDK_ID FIXTURE_SDK
#endif
#if defined(FIXTURE_STANDARD)
#undef STIEFEL_STANDARD
#define STIEFEL_STANDARD FIXTURE_STANDARD
#endif
#if defined(FIXTURE_ISA)
#undef STIEFEL_ISA
#define STIEFEL_ISA FIXTURE_ISA
#endif
#if !defined(FIXTURE_TAG)
#define FIXTURE_TAG STIEFEL_ABI_TAG
#endif
#if !defined(FIXTURE_SYMBOL)
#define FIXTURE_SYMBOL stiefel_plugin
#endif
#if !defined(FIXTURE_NAME)
#define FIXTURE_NAME "still"
#endif
#if !defined(FIXTURE_TABLE_EXCESS)
#define FIXTURE_TABLE_EXCESS 0
#endif
#if !defined(FIXTURE_ENTRY_EXCESS)
#define FIXTURE_ENTRY_EXCESS 0
#endif
#if !defined(FIXTURE_COUNT)
#define FIXTURE_COUNT 1
#endif

namespace {
using stiefel::Entry, stiefel::PluginTable;

constexpr Entry entry() {
  Entry made = stiefel::optimizer<Still>(FIXTURE_NAME, "leaves every block where it is");
#if defined(FIXTURE_NULL)
  made.create_double = nullptr;
#endif
#if defined(FIXTURE_ROLE)
  made.role = stiefel::Role(FIXTURE_ROLE);
#endif
  return made;
}
constexpr Entry entries[] = {entry(), entry()};
constexpr auto tag = FIXTURE_TAG;
}  // namespace

extern "C" STIEFEL_API const PluginTable FIXTURE_SYMBOL;
extern "C" const PluginTable FIXTURE_SYMBOL = {sizeof(PluginTable) + FIXTURE_TABLE_EXCESS,
                                               sizeof(Entry) + FIXTURE_ENTRY_EXCESS,
                                               "1.0",
                                               entries,
                                               FIXTURE_COUNT,
                                               tag.data()};

#if defined(FIXTURE_CALLS)
extern "C" void FIXTURE_CALLS();
extern "C" STIEFEL_API void fixture_caller() { FIXTURE_CALLS(); }
#endif
