# stiefel::openblas, the pthread flavor and no other: the serial one gives wrong products when several threads call it, and all
# flavors share one soname.
if(NOT TARGET stiefel::openblas)
  find_library(STIEFEL_OPENBLAS openblas
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread /usr/lib/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/openblas-pthread NO_DEFAULT_PATH)
  if(NOT STIEFEL_OPENBLAS)
    message(FATAL_ERROR "The pthread flavor of OpenBLAS is not installed; install it with: apt-get install libopenblas-pthread-dev")
  endif()
  add_library(stiefel::openblas UNKNOWN IMPORTED)
  set_target_properties(stiefel::openblas PROPERTIES IMPORTED_LOCATION ${STIEFEL_OPENBLAS})
endif()
