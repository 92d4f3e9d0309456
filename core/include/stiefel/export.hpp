/// Visibility of libstiefel's symbols: everything is hidden unless marked STIEFEL_API.
#pragma once

#define STIEFEL_API __attribute__((visibility("default")))
