# Precompiled headers, which take most of a file's compile time away: Eigen, fmt, the SDK and doctest.
option(STIEFEL_PRECOMPILE "Precompile Eigen, fmt, the SDK and doctest" ON)

# stiefel_precompile(TARGET GROUP header …): the first target of a group compiles the headers, the others use what it has made; the
# targets of a group must have the same compile options.
function(stiefel_precompile target group)
  if(NOT STIEFEL_PRECOMPILE)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY STIEFEL_PRECOMPILED_${group})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY STIEFEL_PRECOMPILED_${group} ${target})
  endif()
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "")  # a macro that each target has under another name
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # lets ccache see what was included
endfunction()
