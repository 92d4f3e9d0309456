# How code is compiled that takes no part in training: with few optimizations, and several files as one (STIEFEL_UNITY), since most of the
# time goes into the same headers again and again.
option(STIEFEL_UNITY "Compile several files as one where no training happens" ON)

# The flag comes after that of the build type, so it wins.
function(stiefel_compile_together target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(STIEFEL_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()
