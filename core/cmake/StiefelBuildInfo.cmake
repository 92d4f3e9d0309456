# What a result file says of the program that made it: written at every build, so that a commit is never out of date.
#
# As a script (cmake -P) it writes the header; included, it adds the target build_info and hands the header to provenance.cpp.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(commit unknown)
  set(dirty unknown)
  set(diff_sha256 unknown)
  execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(commit ${found})
    execute_process(COMMAND git diff HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE difference ERROR_QUIET)
    if(difference STREQUAL "")
      set(dirty no)
      set(diff_sha256 "")
    else()
      set(dirty yes)
      string(SHA256 diff_sha256 "${difference}")
    endif()
  endif()
  file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT "#define STIEFEL_GIT_COMMIT \"@commit@\"
#define STIEFEL_GIT_DIRTY \"@dirty@\"
#define STIEFEL_GIT_DIFF_SHA256 \"@diff_sha256@\"
#define STIEFEL_VERSION \"@VERSION@\"
#define STIEFEL_CXX_FLAGS \"@FLAGS@\"
#define STIEFEL_YAML_VERSION \"@YAML@\"
")
else()
  set(STIEFEL_BUILD_INFO ${CMAKE_BINARY_DIR}/generated/build_info.hpp)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" flags)
  add_custom_target(build_info BYPRODUCTS ${STIEFEL_BUILD_INFO}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${STIEFEL_BUILD_INFO} -DVERSION=${PROJECT_VERSION} "-DFLAGS=${flags}" -DYAML=${yaml-cpp_VERSION}
            -P ${CMAKE_CURRENT_LIST_FILE})
  add_dependencies(stiefel_cold build_info)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/results/record/provenance.cpp TARGET_DIRECTORY stiefel_cold PROPERTIES COMPILE_OPTIONS "-include;${STIEFEL_BUILD_INFO}" OBJECT_DEPENDS ${STIEFEL_BUILD_INFO}
    SKIP_UNITY_BUILD_INCLUSION ON)
endif()
