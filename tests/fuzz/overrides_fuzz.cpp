// Words of a command line, one a line, over a valid experiment.
#include <sstream>

#include "reloading.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> words;
  for (std::string line; std::getline(lines, line);) words.push_back(line);
  fuzz::load_twice(config_test::valid, words);
  return 0;
}
