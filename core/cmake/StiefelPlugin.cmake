# stiefel_add_plugin(NAME source.cpp …): a plugin NAME.so, from the source tree or from anywhere with find_package(stiefel).
#
# Hidden visibility leaves one exported symbol; products of plain Eigen expressions run in the BLAS of libstiefel.
function(stiefel_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE stiefel::stiefel)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_definitions(${name} PRIVATE EIGEN_USE_BLAS)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(DEFINED STIEFEL_PLUGIN_OUTPUT)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${STIEFEL_PLUGIN_OUTPUT})
    target_link_libraries(${name} PRIVATE stiefel_warnings)
  endif()
endfunction()
