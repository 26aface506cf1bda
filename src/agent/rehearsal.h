/* rehearsal.h - a sandbox that is made ahead of need runs one command for nobody. */
#pragma once

/*
 * The first command of a sandbox pays for what later ones find: the directories on the way to its program are
 * looked up in a new overlay, our own pages are copied, a leaf of the cgroups is made. This pays it before
 * anybody waits. limits_held() must be true. Failures are nobody's business: the first command will tell.
 */
void rehearse(void);
