# What a result file says of the program that made it: written at every build, so that a commit is never out of date.
#
# As a script (cmake -P) it writes the file; included, it adds the target build_info and the file to the library.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(commit unknown)
  set(dirty unknown)
  set(diff_sha256 unknown)
  execute_process(COMMAND git rev-parse HEAD --show-toplevel WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  string(REPLACE "\n" ";" found "${found}")
  list(POP_FRONT found head)
  file(REAL_PATH "${SOURCE}" source)
  if(NOT failed AND found STREQUAL source)  # not of a repository around an unpacked archive
    set(commit ${head})
    execute_process(COMMAND git diff HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE difference ERROR_QUIET)
    if(difference STREQUAL "")
      set(dirty no)
      set(diff_sha256 "")
    else()
      set(dirty yes)
      string(SHA256 diff_sha256 "${difference}")
    endif()
  endif()
  string(REPLACE "\\" "\\\\" FLAGS "${FLAGS}")
  string(REPLACE "\"" "\\\"" FLAGS "${FLAGS}")
  file(CONFIGURE OUTPUT ${SOURCE_FILE} @ONLY CONTENT "#include \"record/build_info.hpp\"

const stiefel::BuildInfo stiefel::build_info = {
    .git_commit = \"@commit@\",
    .git_dirty = \"@dirty@\",
    .git_diff_sha256 = \"@diff_sha256@\",
    .version = \"@VERSION@\",
    .cxx_flags = \"@FLAGS@\",
    .yaml_version = \"@YAML@\",
};
")
else()
  set(STIEFEL_BUILD_INFO ${CMAKE_BINARY_DIR}/generated/build_info.cpp)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" flags)
  add_custom_target(build_info BYPRODUCTS ${STIEFEL_BUILD_INFO}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DSOURCE_FILE=${STIEFEL_BUILD_INFO} -DVERSION=${PROJECT_VERSION} "-DFLAGS=${flags}" -DYAML=${yaml-cpp_VERSION}
            -P ${CMAKE_CURRENT_LIST_FILE})
  add_dependencies(stiefel_cold build_info)
  target_sources(stiefel_cold PRIVATE ${STIEFEL_BUILD_INFO})
  set_source_files_properties(${STIEFEL_BUILD_INFO} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endif()
