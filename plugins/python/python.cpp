// Maps, tasks and optimizers that are written in Python (docs/PYTHON.md).
#include "python/map.hpp"
#include "python/optimizer.hpp"
#include "python/task.hpp"

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<stiefel::python::Map>("python", "a map that a Python file defines"),
               stiefel::task<stiefel::python::Task>("python", "a task that a Python file defines"),
               stiefel::optimizer<stiefel::python::Optimizer>("python", "an optimizer that a Python file defines"))
