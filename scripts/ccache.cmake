# Compiles through ccache when it is installed; included by the presets.
find_program(STIEFEL_CCACHE ccache)
if(STIEFEL_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STIEFEL_CCACHE})
endif()
