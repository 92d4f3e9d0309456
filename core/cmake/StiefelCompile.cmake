# How code outside the inner loops of training is compiled: with few optimizations, and several files as one (STIEFEL_UNITY), since most of the
# time goes into the same headers again and again.
option(STIEFEL_UNITY "Compile several files of a folder as one" ON)

# Compiles each folder's files in batches of this many, and generated files alone; files with their own options also stay alone.
function(stiefel_unity target batch)
  if(NOT STIEFEL_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${source} generated)
    if(source MATCHES "\\.cpp$" AND NOT generated)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(MAKE_C_IDENTIFIER "in_${folder}" folder)
      math(EXPR group "${count_${folder}} + 0")
      math(EXPR count_${folder} "${group} + 1")
      math(EXPR group "${group} / ${batch}")
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes the files that a batch includes for headers, where a type of an unnamed namespace would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# The flags come after those of the build type, so they win. With sanitizers GCC takes twice as long for -O1 as for -O0.
function(stiefel_optimize_little target)
  if(STIEFEL_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

function(stiefel_compile_together target)
  stiefel_optimize_little(${target})
  stiefel_unity(${target} 24)
endfunction()
