# stiefel_add_plugin(NAME source.cpp …): a plugin NAME.so, from the source tree or from anywhere with find_package(stiefel).
#
# Exactly one symbol is exported, so that no inline function of a plugin built for another instruction set takes the place of
# anybody else's.
function(stiefel_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE stiefel::stiefel)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_definitions(${name} PRIVATE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
  target_compile_options(${name} PRIVATE -ffp-contract=off)  # the bits of STIEFEL_SIMD_CLONES do not depend on the CPU
  if(NOT STIEFEL_SANITIZE AND NOT "${CMAKE_CXX_FLAGS}${CMAKE_MODULE_LINKER_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE LINKER:-z,defs)  # sanitizers leave their functions to the program
  endif()
  target_link_options(${name} PRIVATE LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin_exports.map LINKER:--build-id)
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(DEFINED STIEFEL_PLUGIN_OUTPUT)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${STIEFEL_PLUGIN_OUTPUT})
    target_link_libraries(${name} PRIVATE stiefel_warnings)
    stiefel_precompile(${name} plugins <stiefel/plugin.hpp>)
    if(STIEFEL_PLUGIN_OUTPUT STREQUAL "${CMAKE_BINARY_DIR}/lib/stiefel/plugins")  # not those of the tests
      install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/stiefel/plugins COMPONENT runtime)
    endif()
  elseif(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
    target_compile_options(${name} PRIVATE -O3)
    target_compile_definitions(${name} PRIVATE NDEBUG)
  endif()
endfunction()
