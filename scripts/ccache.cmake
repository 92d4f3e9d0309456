# Compiles through ccache when it is installed; included by the presets.
find_program(STIEFEL_CCACHE ccache)
if(STIEFEL_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the sloppiness it would not cache what uses a precompiled header. Without depend mode it would take a precompiled header for
  # another one whose sources differ in comments and macros alone.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${STIEFEL_CCACHE})
endif()
