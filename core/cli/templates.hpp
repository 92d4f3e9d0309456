// The files that `stiefel new` writes; NAME and CLASS are replaced.
#pragma once

namespace stiefel::cli {

struct Template {
  const char* role;
  const char* source;   // NAME.cpp
  const char* example;  // example.yaml
};

extern const Template templates[4];
extern const char* const cmake_template;

}  // namespace stiefel::cli
