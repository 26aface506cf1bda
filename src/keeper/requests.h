/* requests.h - what the front asks, and which sandboxes a new front is told of: the events of front.h. */
#pragma once

#include "keeper/front.h"

struct front_events requests(void);
