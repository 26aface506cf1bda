#include "base/clock.h"

#include <stdio.h>

void clock_iso(uint64_t wall_ms, char text[CLOCK_ISO_SIZE])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	char day[20];

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text, CLOCK_ISO_SIZE, "%s.%03uZ", day, (unsigned)(wall_ms % 1000));
}
