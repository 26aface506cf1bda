/* told.h - inside the room: what the keeper tells, for control_new(); its ctx is the struct sandboxes. */
#pragma once

#include "sandbox/control.h"

extern const struct control_callbacks told_callbacks;
